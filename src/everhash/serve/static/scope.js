/** The warning that a query is unlike anything labelled, and why. */

import { button, byId, el } from "./dom.js";
import { Novelty } from "./novelty.js";
import { measure } from "./words.js";

export class Scope {
  /** @param {any} page */
  constructor(page) {
    this.page = page;
    this.novelty = new Novelty(page.api);
    this.turn = 0;
  }

  /** Nothing is known of a query yet. */
  clear() {
    this.turn += 1;
    byId("novel").hidden = true;
  }

  /** Warn if this is large. @param {number|null} novelty */
  async judge(novelty) {
    const turn = ++this.turn;
    const scale = novelty === null ? null : await this.novelty.known(this.page.stats);
    if (turn !== this.turn) return;
    const far = scale !== null && novelty !== null && novelty > scale.limit;
    byId("novel").hidden = !far;
    if (far) this.#warn(novelty, scale);
  }

  /** @param {number} novelty @param {{limit: number, of: number}} scale */
  #warn(novelty, { limit, of }) {
    const box = byId("novel");
    const rule = [
      "Novelty is the distance to the nearest codeword.",
      `Here it is ${measure(novelty)}; of ${of} unlabelled entries in the collection`,
      `19 in 20 stay below ${measure(limit)}.`,
      "What lies beyond may belong to none of the labels.",
    ].join(" ");
    const tip = el("span", { class: "tip", id: "novel-tip", role: "tooltip", text: rule });
    const props = { class: "link", "aria-expanded": "false", "aria-describedby": "novel-tip" };
    const why = button("Why?", props, () => {
      why.setAttribute("aria-expanded", String(box.classList.toggle("open")));
    });
    const title = el("strong", { text: "Perhaps out of scope. " });
    const text = "This is farther from every label than 19 in 20 stored entries. ";
    box.classList.remove("open");
    box.replaceChildren(title, text, why, tip);
  }
}
