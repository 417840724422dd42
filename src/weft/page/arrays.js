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
  const { shape, causal: isCausal, sums } = leaf;
  if (leaf.dtype === "sinusoids") return { shape, values: sinusoids(shape, leaf.width) };
  const numbers = numbersOf(leaf);
  const values = isCausal ? withoutFuture(shape, numbers) : numbers;
  return { shape, values: sums ? summingUp(values, arrayOf(sums).values, leaf.root) : values };
}

// The numbers that were written: fractions of a scale, whose roots keep their signs, or halves.
function numbersOf({ dtype, scale, root: isRoot, data: text }) {
  const raw = dtype === "int6" ? lettersOf(text) : rawOf(text, TYPES[dtype]);
  if (dtype === "float16") return halves(raw);
  if (scale === undefined) return raw;
  const values = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i++) values[i] = raw[i] * scale;
  if (isRoot) for (let i = 0; i < raw.length; i++) values[i] *= Math.abs(values[i]);
  return values;
}

function rawOf(text, Type) {
  const bytes = bytesOf(text);
  return new Type(bytes.buffer, 0, bytes.length / Type.BYTES_PER_ELEMENT);
}

// Numbers from -31 to 31: a letter of base64 each, that of 0 in the middle.
const LETTERS = new Int8Array(128);
[..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((letter, i) => (LETTERS[letter.charCodeAt(0)] = i - 32));

function lettersOf(text) {
  const raw = new Int8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = LETTERS[text.charCodeAt(i)];
  return raw;
}

// Rows of the last axis, so that they add up to what they should: what each lacks is divided as the steps between its
// numbers are, by their amounts or, of coded roots, by the roots of these.
function summingUp(written, sums, isRoot) {
  const values = Float32Array.from(written);
  const length = values.length / (sums.length || 1);
  const weightOf = isRoot ? (value) => Math.sqrt(Math.abs(value)) : Math.abs;
  sums.forEach((sum, row) => {
    const own = values.subarray(row * length, (row + 1) * length);
    let [missing, total] = [sum, 0];
    for (const value of own) [missing, total] = [missing - value, total + weightOf(value)];
    if (total > 0) for (let i = 0; i < length; i++) own[i] += (missing * weightOf(own[i])) / total;
  });
  return values;
}

// The vectors of positions that a formula gives: Vaswani et al. 2017, section 3.5.
function sinusoids([length, columns], width) {
  const values = new Float32Array(length * columns);
  for (let column = 0; column < columns; column++) {
    const frequency = 10_000 ** (-(column - (column % 2)) / width);
    const wave = column % 2 ? Math.cos : Math.sin;
    for (let at = 0; at < length; at++) values[at * columns + column] = wave(at * frequency);
  }
  return values;
}

// As many digits, of three at most, as the steps between the numbers of an array allow.
const digitsIn = (leaf) => (leaf.dtype?.startsWith("int") && leaf.scale ? clamped(Math.ceil(-Math.log10(leaf.scale)), 4) : 3);

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
