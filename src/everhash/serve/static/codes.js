/** Codes as small pictures, each with a text that says the same. */

import { colours } from "./colours.js";
import { el, sized } from "./dom.js";
import { signs } from "./texts.js";

const LONGEST = 256; // bits up to which a strip shows the inactive ones too
const NAMED = 12; // differing bits that the text names
const KEPT = 500; // pictures beyond which those no longer on the page are forgotten

/**
 * How a query and an entry compare: +1 agree, -1 differ, 0 inactive.
 * @typedef {{label: any, cycle: number, bits: number[], why: string}} Explanation
 */

/** @type {Map<HTMLCanvasElement, () => void>} */
const drawn = new Map();

/** Draw everything again: colours or sizes have changed. */
export function redrawCodes() {
  for (const [canvas, draw] of drawn) canvas.isConnected ? draw() : drawn.delete(canvas);
}

/** @param {HTMLCanvasElement} canvas @param {() => void} draw */
function keep(canvas, draw) {
  if (drawn.size > KEPT) for (const old of drawn.keys()) old.isConnected || drawn.delete(old);
  drawn.set(canvas, draw);
  draw();
}

/**
 * A word as a square of cells: what an entry without picture or text looks like.
 * @param {ArrayLike<number>} word of -1, 0 and +1
 * @param {number} size in pixels
 */
export function pattern(word, size) {
  const text = `code ${signs(word)}`;
  const canvas = el("canvas", { class: "pattern", role: "img", "aria-label": text });
  const down = rowsOf(word.length);
  const across = Math.ceil(word.length / down);
  keep(canvas, () => {
    const pen = sized(canvas, size, size);
    const { plus, minus, none } = colours();
    const [wide, tall] = [size / across, size / down];
    for (let i = 0; i < word.length; i++) {
      pen.fillStyle = word[i] > 0 ? plus : word[i] < 0 ? minus : none;
      const [x, y] = [(i % across) * wide, Math.floor(i / across) * tall].map(Math.round);
      pen.fillRect(x, y, Math.max(1, Math.round(wide) - 1), Math.max(1, Math.round(tall) - 1));
    }
  });
  return canvas;
}

/** How many rows a word fills without a gap, if it can. @param {number} n */
function rowsOf(n) {
  const root = Math.floor(Math.sqrt(n));
  for (let rows = root; rows > root / 2; rows--) if (n % rows === 0) return rows;
  return Math.max(1, root);
}

/**
 * An explanation, bit by bit. Bits that agree stand tall, those that differ hang low, so that
 * colour is not needed to tell them apart.
 * @param {Explanation} explanation
 * @param {HTMLElement} room what it is as wide as
 */
export function strip(explanation, room) {
  const { bits } = explanation;
  const shown = bits.length <= LONGEST ? bits : bits.filter((bit) => bit !== 0);
  const text = explained(explanation);
  const canvas = el("canvas", { class: "strip", role: "img", "aria-label": text });
  keep(canvas, () => {
    const width = room.clientWidth;
    const pen = sized(canvas, width, 16);
    const { plus, minus, line } = colours();
    const cell = width / shown.length;
    shown.forEach((bit, i) => {
      const [top, tall] = bit > 0 ? [0, 10] : bit < 0 ? [7, 9] : [7, 2];
      pen.fillStyle = bit > 0 ? plus : bit < 0 ? minus : line;
      pen.fillRect(i * cell, top, Math.max(0.6, cell - (cell > 3 ? 1 : 0)), tall);
    });
  });
  return canvas;
}

/** An explanation in words. @param {Explanation} explanation */
export function explained(explanation) {
  const { bits } = explanation;
  const differ = bits.flatMap((bit, at) => (bit < 0 ? [at] : []));
  const named = differ.slice(0, NAMED).join(", ") + (differ.length > NAMED ? " and more" : "");
  const where = differ.length ? `; they differ at ${named}` : "";
  const inactive = bits.filter((bit) => bit === 0).length;
  return `${agreement(explanation)}${where}; ${inactive} inactive`;
}

/** The short form. @param {Explanation} explanation */
export function agreement({ cycle, bits }) {
  const active = bits.filter((bit) => bit !== 0).length;
  const agree = bits.filter((bit) => bit > 0).length;
  return `${agree} of ${active} bits agree${cycle >= 0 ? ` · cycle ${cycle}` : ""}`;
}
