/** Reading a row that somebody has pasted. */

/**
 * @param {string} text JSON, or numbers separated by commas, semicolons or blanks
 * @param {number} dim how many numbers the collection expects
 * @returns {number[]} or throws an `Error` that says what was expected
 */
export function readVector(text, dim) {
  const expected = dim ? `expected ${dim} numbers` : "expected numbers";
  const trimmed = text.trim();
  if (!trimmed) throw new Error(`${expected}, got nothing`);
  const apart = () => trimmed.split(/[\s,;]+/).filter(Boolean);
  const parts = trimmed.startsWith("[") ? fromJson(trimmed, expected) : apart();
  const row = parts.map((part, i) => {
    const number = typeof part === "string" ? Number(part) : part;
    if (typeof number !== "number" || !Number.isFinite(number)) {
      throw new Error(`${expected}, but number ${i + 1} is ${shown(part)}`);
    }
    return number;
  });
  if (dim && row.length !== dim) throw new Error(`${expected}, got ${row.length}`);
  return row;
}

/** @param {string} text @param {string} expected @returns {any[]} */
function fromJson(text, expected) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${expected} as a JSON list such as [0.1, 2, -3], but this is no JSON`);
  }
  if (Array.isArray(value[0])) {
    if (value.length > 1) throw new Error(`${expected} of one row, got ${value.length} rows`);
    value = value[0];
  }
  return value;
}

/** @param {any} part */
function shown(part) {
  const text = typeof part === "string" ? `“${part}”` : JSON.stringify(part);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
