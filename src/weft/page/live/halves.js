/* Arrays as a model's file has them: base64 of little-endian numbers, floats with 16 bits. */

// The value of each pattern of 16 bits (IEEE 754-2019, binary16), computed once.
const HALVES = Float32Array.from({ length: 65536 }, (_, bits) => {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
});

function bytesOf(base64) {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

const countOf = (shape) => shape.reduce((product, length) => product * length, 1);

// A view of so many numbers in a buffer, each at a multiple of its size.
function viewOf(buffer, { dtype, shape, offset }) {
  const views = { float16: Uint16Array, float32: Float32Array, int8: Int8Array, int32: Int32Array };
  return new views[dtype](buffer, offset, countOf(shape));
}

// An array with 32 bits a number.
function floatsOf(buffer, entry) {
  const view = viewOf(buffer, entry);
  if (entry.dtype !== "float16") return Float32Array.from(view);
  const floats = new Float32Array(view.length);
  for (let i = 0; i < view.length; i++) floats[i] = HALVES[view[i]];
  return floats;
}

// The rows of a matrix, which stay as they are stored until one is asked for: most of a table of n-grams never is.
function rowsOf(buffer, entry) {
  const view = viewOf(buffer, entry);
  const width = entry.shape[1];
  return {
    length: entry.shape[0],
    width,
    at(number) {
      const row = view.subarray(number * width, (number + 1) * width);
      return entry.dtype === "float16" ? Float32Array.from(row, (bits) => HALVES[bits]) : row;
    },
  };
}
