/** A map of the whole matrix, where it does not fit: the staircase, and the part in view. */

import { colours } from "./colours.js";
import { byId, sized } from "./dom.js";

const WIDE = 56;

export class MatrixMap {
  /** @param {HTMLElement} view what scrolls */
  constructor(view) {
    this.view = view;
    this.canvas = byId("matrix-map");
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.#go(event);
    });
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (event.buttons) this.#go(event);
    });
  }

  /** @param {PointerEvent} event */
  #go(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = (event.clientY - box.top) / box.height;
    this.view.scrollTop = share * this.view.scrollHeight - this.view.clientHeight / 2;
  }

  /** @param {import("./labels.js").Label[]} labels @param {number} height of the whole matrix */
  draw(labels, height) {
    const tall = this.view.clientHeight;
    const needed = height > tall + 1;
    if (this.canvas.hidden === needed) this.canvas.hidden = !needed; // the view's size follows
    if (!needed) return;
    const pen = sized(this.canvas, WIDE, tall);
    const { muted, accent } = colours();
    const cycles = labels[labels.length - 1].cycle + 1;
    const [x, y] = [WIDE / cycles, tall / labels.length];
    pen.fillStyle = muted;
    for (let row = 0; row < labels.length; ) {
      const start = row;
      while (row < labels.length && labels[row].cycle === labels[start].cycle) row++;
      const tallness = Math.max(1, (row - start) * y);
      pen.fillRect(labels[start].cycle * x, start * y, Math.max(2, x), tallness);
    }
    const scale = tall / this.view.scrollHeight;
    pen.fillStyle = accent;
    pen.globalAlpha = 0.25;
    pen.fillRect(0, this.view.scrollTop * scale, WIDE, Math.max(6, tall * scale));
    pen.globalAlpha = 1;
    pen.strokeStyle = accent;
    pen.strokeRect(0.5, this.view.scrollTop * scale + 0.5, WIDE - 1, Math.max(6, tall * scale) - 1);
  }
}
