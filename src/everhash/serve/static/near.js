/** Known labels with nearly the same name, so that nobody makes a second one by a slip. */

import { labelText } from "./texts.js";

const MOST = 6;
const ALIKE = 0.7; // share of the letters that have to agree
const WHOLE = 3; // letters of a name from which on another that has it as a word is near

/**
 * @param {string} text
 * @param {import("./labels.js").Label[]} labels
 * @returns {any[]} labels, the nearest first
 */
export function nearLabels(text, labels) {
  const wanted = plain(text);
  return labels
    .map(({ label }) => ({ label, alike: alike(wanted, plain(labelText(label))) }))
    .filter((one) => one.alike >= ALIKE)
    .sort((a, b) => b.alike - a.alike)
    .slice(0, MOST)
    .map(({ label }) => label);
}

/** Without case, accents and signs. @param {string} text */
function plain(text) {
  const letters = text.normalize("NFKD").toLowerCase().replace(/[\u0300-\u036f]/g, "");
  return letters.replace(/[^\p{L}\p{N}]+/gu, " ").trim() || letters;
}

/**
 * The share of letters that need no change, of the longer one.
 * @param {string} a
 * @param {string} b
 */
function alike(a, b) {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  const longest = long.length;
  const allowed = Math.floor((1 - ALIKE) * longest);
  const within = short.length >= WHOLE && ` ${long} `.includes(` ${short} `) ? ALIKE : 0;
  if (longest - short.length > allowed) return within;
  return Math.max(within, 1 - changes(a, b, allowed) / Math.max(1, longest));
}

/**
 * Letters to insert, leave out or replace (Levenshtein); more than allowed ones are not counted.
 * @param {string} a
 * @param {string} b
 * @param {number} allowed
 */
function changes(a, b, allowed) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(same, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
    if (Math.min(...row) > allowed) return Infinity;
  }
  return row[b.length];
}
