/* The numbers of an inspection: lists in lists, or packed as base64. */

const unpacked = new WeakMap(); // what was read once

// An array of numbers, in whatever form it came: {shape, values}, where values is one flat list.
// Lists in lists, {shape, dtype, data} of a file or the server, {shape, values} of a live page.
function arrayOf(leaf) {
  if (!leaf) return null;
  const isList = Array.isArray(leaf);
  if (!isList && leaf.values) return leaf;
  if (!unpacked.has(leaf)) unpacked.set(leaf, isList ? flattened(leaf) : unpack(leaf));
  return unpacked.get(leaf);
}

// One array inside another: that of these first indexes, which shares its numbers.
function within({ shape, values }, ...indexes) {
  const rest = shape.slice(indexes.length);
  const size = rest.reduce((product, length) => product * length, 1);
  const place = indexes.reduce((sum, index, axis) => sum * shape[axis] + index, 0);
  return { shape: rest, values: values.subarray(place * size, (place + 1) * size) };
}

function flattened(list) {
  const shape = [];
  for (let inner = list; Array.isArray(inner); [inner] = inner) shape.push(inner.length);
  return { shape, values: Float32Array.from(list.flat(Infinity)) };
}

const TYPES = {
  float16: Uint16Array,
  float32: Float32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
};

function unpack(leaf) {
  const { shape, causal: isCausal } = leaf;
  const values = numbersOf(leaf);
  return { shape, values: isCausal ? withoutFuture(shape, values) : values };
}

// The numbers that were written: fractions of a scale, whose roots keep their signs, or halves.
function numbersOf({ dtype, scale, root: isRoot, data: text }) {
  const bytes = bytesOf(text);
  const Type = TYPES[dtype];
  const raw = new Type(bytes.buffer, 0, bytes.length / Type.BYTES_PER_ELEMENT);
  if (dtype === "float16") return halves(raw);
  if (scale === undefined) return raw;
  const values = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i++) values[i] = raw[i] * scale;
  if (isRoot) for (let i = 0; i < raw.length; i++) values[i] *= Math.abs(values[i]);
  return values;
}

// Maps whose last two axes have zeros above the diagonal, which are not written.
function withoutFuture(shape, written) {
  const length = shape.at(-1);
  const whole = new Float32Array(shape.reduce((product, size) => product * size, 1));
  let from = 0;
  for (let row = 0; row * length < whole.length; row++) {
    const seen = (row % length) + 1;
    whole.set(written.subarray(from, from + seen), row * length);
    from += seen;
  }
  return whole;
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Numbers of 16 bits (IEEE 754-2019, section 3.6: 1 bit of sign, 5 of exponent, 10 of fraction).
const POWERS = Float32Array.from({ length: 32 }, (_, exponent) => 2 ** ((exponent || 1) - 25));
function halves(raw) {
  const values = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i++) {
    const exponent = (raw[i] >> 10) & 31;
    const fraction = (raw[i] & 1023) + (exponent ? 1024 : 0);
    const size = exponent === 31 ? (raw[i] & 1023 ? NaN : Infinity) : fraction * POWERS[exponent];
    values[i] = raw[i] & 0x8000 ? -size : size;
  }
  return values;
}
