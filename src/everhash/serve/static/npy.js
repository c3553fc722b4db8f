/** Reading rows of a NumPy file, each when it is asked for: the file may be of any size. */

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY
const LONGEST_HEAD = 65_548;

/** @type {Object<string, (view: DataView, at: number, little: boolean) => number>} */
const TYPES = {
  f8: (view, at, little) => view.getFloat64(at, little),
  f4: (view, at, little) => view.getFloat32(at, little),
  f2: (view, at, little) => half(view.getUint16(at, little)),
  i8: (view, at, little) => Number(view.getBigInt64(at, little)),
  i4: (view, at, little) => view.getInt32(at, little),
  i2: (view, at, little) => view.getInt16(at, little),
  i1: (view, at) => view.getInt8(at),
  u8: (view, at, little) => Number(view.getBigUint64(at, little)),
  u4: (view, at, little) => view.getUint32(at, little),
  u2: (view, at, little) => view.getUint16(at, little),
  u1: (view, at) => view.getUint8(at),
  b1: (view, at) => view.getUint8(at),
};

/** Whether bytes begin like a NumPy file. @param {Uint8Array} bytes */
export function isNpy(bytes) {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}

/**
 * Rows of a file with one row (1-d) or several (2-d).
 * @param {Blob} file
 * @returns {Promise<{n: number, width: number, row: (at: number) => Promise<number[]>}>}
 */
export async function readNpy(file) {
  const { start, kind, fortran, shape } = await head(file);
  if (shape.length < 1 || shape.length > 2) {
    const dims = `this array has ${shape.length} dimensions (${shape.join(" × ") || "a number"})`;
    throw new Error(`expected one row or a table of rows, ${dims}`);
  }
  const [n, width] = shape.length === 1 ? [1, shape[0]] : shape;
  const read = TYPES[kind.slice(1)];
  if (!read) throw new Error(`expected numbers, this array is of type ${kind}`);
  const size = Number(kind.slice(2));
  if (file.size < start + n * width * size) throw new Error("the file ends too early");
  const step = fortran ? n : 1; // values from one number of a row to the next
  const row = async (/** @type {number} */ at) => {
    const first = start + (fortran ? at : at * width) * size;
    const bytes = file.slice(first, first + ((width - 1) * step + 1) * size);
    const view = new DataView(await bytes.arrayBuffer());
    return Array.from({ length: width }, (_, i) => read(view, i * step * size, kind[0] !== ">"));
  };
  return { n, width, row };
}

/** What the head of a file says. @param {Blob} file */
async function head(file) {
  const view = new DataView(await file.slice(0, LONGEST_HEAD).arrayBuffer());
  const wide = view.getUint8(6) > 1; // the length takes four bytes since version 2
  const start = (wide ? 12 : 10) + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  const text = new TextDecoder("latin1").decode(view.buffer.slice(10, start));
  const kind = text.match(/'descr':\s*'([^']+)'/)?.[1];
  const shape = text.match(/'shape':\s*\(([\d,\s]*)\)/)?.[1];
  if (!kind || shape === undefined) throw new Error("expected an array of numbers");
  const sizes = shape.split(",").filter((part) => part.trim()).map(Number);
  return { start, kind, fortran: /'fortran_order':\s*True/.test(text), shape: sizes };
}

/** A number of half precision. @param {number} bits */
function half(bits) {
  const [sign, power, rest] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (power === 31) return rest ? NaN : sign * Infinity;
  return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024));
}
