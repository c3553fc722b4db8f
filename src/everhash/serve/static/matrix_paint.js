/** Drawing the part of the code matrix that is in view. */

import { colours } from "./colours.js";
import { calm } from "./dom.js";
import { labelText } from "./texts.js";

export const HEAD = 20; // height of the line that names the cycles
const GLOW = 900; // milliseconds a new label stands out

/**
 * Where everything stands, in pixels.
 * @typedef {{n: number, bits: number, cycles: number, width: number, gutter: number, cell: number,
 *   row: number, room: number}} Place
 *
 * What is drawn besides the words: scroll position, what is pointed at, and when rows arrived.
 * @typedef {{left: number, top: number, tall: number, at: {row: number, bit: number},
 *   young: Map<number, number>}} Scene
 */

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {import("./labels.js").Label[]} labels
 * @param {Place} place
 * @param {Scene} scene
 */
export function paint(pen, labels, place, scene) {
  forgetOld(scene.young);
  const first = Math.max(0, Math.floor((scene.top - HEAD) / place.row));
  const last = Math.min(place.n, Math.ceil((scene.top + scene.tall - HEAD) / place.row));
  pen.font = '12px system-ui, "Liberation Sans", sans-serif';
  pen.textBaseline = "middle";
  for (let row = first; row < last; row++) {
    const y = HEAD + row * place.row - scene.top;
    paintWord(pen, labels[row], place, y, scene.left);
    paintName(pen, labels[row], place, y, row === scene.at.row);
    if (scene.young.has(row)) paintGlow(pen, place, scene, row, y);
    if (row === scene.at.row) paintOutline(pen, place, scene, y);
  }
  paintCycles(pen, place, scene);
}

/**
 * The word on the bits of its cycle, a thin line on all others.
 * @param {CanvasRenderingContext2D} pen
 * @param {import("./labels.js").Label} label
 * @param {Place} place
 * @param {number} y
 * @param {number} left
 */
function paintWord(pen, { cycle, codeword }, place, y, left) {
  const { plus, minus, none } = colours();
  const { bits, gutter, cell } = place;
  const start = gutter - left;
  const from = start + cycle * bits * cell;
  const end = Math.min(place.room, start + place.width * cell);
  pen.fillStyle = none;
  const middle = y + (place.row - 1) / 2 - 0.5;
  if (from > gutter) pen.fillRect(gutter, middle, from - gutter, 1);
  const behind = Math.max(gutter, from + bits * cell);
  if (behind < end) pen.fillRect(behind, middle, end - behind, 1);
  for (let bit = 0; codeword && bit < bits; bit++) {
    const x = from + bit * cell;
    if (x + cell <= gutter || x > place.room) continue;
    pen.fillStyle = codeword[bit] > 0 ? plus : minus;
    const [a, b] = [Math.round(x), Math.round(x + cell)];
    pen.fillRect(a, y, Math.max(1, b - a - (cell > 5 ? 1 : 0)), place.row - 1);
  }
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {import("./labels.js").Label} label
 * @param {Place} place
 * @param {number} y
 * @param {boolean} chosen
 */
function paintName(pen, { label }, place, y, chosen) {
  const { ink, muted, surface } = colours();
  pen.fillStyle = surface;
  pen.fillRect(0, y, place.gutter, place.row);
  pen.fillStyle = chosen ? ink : muted;
  pen.fillText(fitted(pen, labelText(label), place.gutter - 12), 2, y + (place.row - 1) / 2);
}

/**
 * A label that has just arrived stands out for a moment.
 * @param {CanvasRenderingContext2D} pen
 * @param {Place} place
 * @param {Scene} scene
 * @param {number} row
 * @param {number} y
 */
function paintGlow(pen, place, { young }, row, y) {
  const age = performance.now() - (young.get(row) ?? 0);
  pen.globalAlpha = 0.7 * Math.max(0, 1 - age / GLOW);
  pen.fillStyle = colours().accent;
  pen.fillRect(place.gutter, y, place.room, place.row - 1);
  pen.globalAlpha = 1;
}

/** Labels are new for a moment, in view or not. @param {Map<number, number>} young */
function forgetOld(young) {
  const since = performance.now() - (calm() ? 0 : GLOW);
  for (const [row, when] of young) if (when <= since) young.delete(row);
}

/**
 * The row that is pointed at, and its bit.
 * @param {CanvasRenderingContext2D} pen
 * @param {Place} place
 * @param {Scene} scene
 * @param {number} y
 */
function paintOutline(pen, place, { left, at }, y) {
  pen.strokeStyle = colours().ink;
  const wide = Math.min(place.room - place.gutter, place.width * place.cell - left);
  pen.strokeRect(place.gutter - 2.5, y - 0.5, wide + 2, place.row);
  if (at.bit < 0) return;
  pen.lineWidth = 2;
  const x = place.gutter + at.bit * place.cell - left;
  pen.strokeRect(x - 0.5, y, place.cell, place.row - 1);
  pen.lineWidth = 1;
}

/**
 * The head, and where cycles begin.
 * @param {CanvasRenderingContext2D} pen
 * @param {Place} place
 * @param {Scene} scene
 */
function paintCycles(pen, place, { left, tall }) {
  const { muted, surface, line } = colours();
  pen.fillStyle = surface;
  pen.fillRect(0, 0, place.room, HEAD - 1);
  const wide = place.bits * place.cell;
  const first = Math.floor(left / wide);
  for (let c = first; c < place.cycles && place.gutter + c * wide - left < place.room; c++) {
    const x = place.gutter + c * wide - left;
    const from = Math.max(x, place.gutter);
    const name = wide > 60 ? `cycle ${c}` : String(c);
    pen.fillStyle = muted;
    const fits = x + wide - from > pen.measureText(name).width + 6;
    if (fits) pen.fillText(name, from + (c ? 5 : 0), HEAD / 2 - 1);
    pen.fillStyle = line;
    if (c && x >= place.gutter) pen.fillRect(Math.round(x) - 1, 0, 1, tall);
  }
}

/**
 * Cut a text to what has room.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} text
 * @param {number} room
 */
function fitted(pen, text, room) {
  const line = text.slice(0, 60);
  if (line === text && pen.measureText(text).width <= room) return text;
  let end = line.length;
  while (end > 1 && pen.measureText(`${line.slice(0, end)}…`).width > room) end--;
  return `${line.slice(0, end)}…`;
}
