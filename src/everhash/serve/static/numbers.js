/** Reading rows of numbers from text: JSON, JSON lines, CSV with or without a header, or pasted. */

/**
 * @param {string} text
 * @param {number} dim how many numbers the collection expects in a row
 * @returns {number[][]} at least one row, or throws an `Error` that says what was expected
 */
export function readNumbers(text, dim) {
  const expected = `expected ${dim} numbers a row`;
  const trimmed = text.trim();
  if (!trimmed) throw new Error(`${expected}, got nothing`);
  if (/^[[{]/.test(trimmed)) return checked(fromJson(trimmed, expected), dim, expected);
  const table = trimmed.split(/\r?\n/).filter((line) => line.trim()).map(cells);
  const flat = table.flat();
  const wrapped = flat.length === dim && table.length > 1; // one row over several lines
  return checked(wrapped ? [flat] : withoutWords(table, dim), dim, expected);
}

/** @param {string} text @param {string} expected @returns {any[][]} */
function fromJson(text, expected) {
  const value = parsed(text);
  const lines = () => text.split(/\r?\n/).filter((line) => line.trim()).map(parsed);
  const rows = value === null ? lines() : Array.isArray(value?.[0]) ? value : [value];
  if (rows.every(Array.isArray)) return rows;
  throw new Error(`${expected} as a JSON list such as [0.1, 2, -3], or a list of such lists`);
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * The cells of a line; a cell in quotes may hold commas.
 * @param {string} line
 * @returns {string[]}
 */
function cells(line) {
  if (!line.includes('"')) return line.trim().replace(/[,;]$/, "").split(/\s*[,;\t]\s*|\s+/);
  const found = line.matchAll(/(?:^|[,;\t])\s*(?:"((?:[^"]|"")*)"|([^,;\t"]*))/g);
  return [...found].map(([, quoted, plain]) => (quoted?.replaceAll('""', '"') ?? plain).trim());
}

/**
 * Leave out a header, and columns of ids, labels or texts if that leaves as many as expected.
 * @param {string[][]} table
 * @param {number} dim
 */
function withoutWords(table, dim) {
  const isNumber = (/** @type {string} */ cell) => cell !== "" && Number.isFinite(Number(cell));
  const rows = table.length > 1 && !table[0].some(isNumber) ? table.slice(1) : table;
  const all = rows[0].map((_, i) => i);
  const numeric = all.filter((i) => rows.every((row) => isNumber(row[i] ?? "")));
  return numeric.length === dim ? rows.map((row) => numeric.map((i) => row[i])) : rows;
}

/** @param {any[][]} rows @param {number} dim @param {string} expected @returns {number[][]} */
function checked(rows, dim, expected) {
  return rows.map((cells, at) => {
    const where = rows.length > 1 ? `row ${at + 1}: ` : "";
    const row = cells.map((cell, i) => {
      const number = typeof cell === "string" && cell !== "" ? Number(cell) : cell;
      if (typeof number === "number" && Number.isFinite(number)) return number;
      throw new Error(`${where}${expected}, but number ${i + 1} is ${shown(cell)}`);
    });
    if (row.length !== dim) throw new Error(`${where}${expected}, got ${row.length}`);
    return row;
  });
}

/** @param {any} part */
function shown(part) {
  const text = typeof part === "string" ? `“${part}”` : JSON.stringify(part);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
