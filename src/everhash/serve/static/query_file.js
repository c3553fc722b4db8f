/** A file to search by: what it holds decides how it is read, not its name. */

import { isNpy, readNpy } from "./npy.js";
import { readNumbers } from "./numbers.js";

const LARGEST_TEXT = 64_000_000;
const WORKS = "a .npy, .csv or .json file of numbers works";

/** @type {[RegExp, string][]} what other files begin with */
const OTHERS = [
  [/^(\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP|BM|II\*|MM\0\*)/s, "a picture"],
  [/^PAR1/, "a Parquet file"],
  [/^PK/, "an archive, such as .npz"],
  [/^(\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd)/, "a compressed file"],
  [/^%PDF/, "a PDF"],
  [/^SQLite format 3/, "a collection or another database"],
  [/\0/, "not text"],
];

/**
 * Rows that can be searched by.
 * @typedef {{name: string, n: number, row: (at: number) => Promise<number[]>}} Rows
 */

/**
 * @param {File} file
 * @param {number} dim numbers of a row
 * @returns {Promise<Rows>} or throws an `Error` that says what works
 */
export async function readQueryFile(file, dim) {
  const { name } = file;
  if (!file.size) throw new Error(`${name} is empty; ${WORKS}`);
  const bytes = new Uint8Array(await file.slice(0, 512).arrayBuffer());
  if (isNpy(bytes)) {
    const { n, width, row } = await readNpy(file);
    if (!n) throw new Error(`${name} has no rows`);
    if (width !== dim) throw new Error(`expected ${dim} numbers a row, ${name} has ${width}`);
    return { name, n, row };
  }
  const start = String.fromCharCode(...bytes);
  const other = OTHERS.find(([begins]) => begins.test(start))?.[1];
  if (other === "a picture") throw new Error(aboutPicture(name, dim));
  if (other) throw new Error(`${name} is ${other}, which is not read here; ${WORKS}`);
  if (file.size > LARGEST_TEXT) throw new Error(`${name} is too long as text; save it as .npy`);
  return rowsOf(readNumbers(await file.text(), dim), name);
}

/** @param {number[][]} rows @param {string} name @returns {Rows} */
export function rowsOf(rows, name) {
  return { name, n: rows.length, row: async (at) => rows[at] };
}

/** @param {string} name @param {number} dim */
function aboutPicture(name, dim) {
  const how = `turn it into ${dim} numbers with the model that made this collection's rows`;
  return `${name} is a picture, and entries are found by numbers: ${how}; ${WORKS}`;
}
