/** The warning that a query is unlike anything learned, and why. */

import { button, byId, el } from "./dom.js";

const NOVEL = 0.95; // a query more novel than this is called out of scope

/** @param {number} novelty from 0 to 1 */
function percent(novelty) {
  return `${Math.floor(100 * novelty)} %`;
}

/** Nothing is known of a query yet. */
export function clearScope() {
  byId("novel").hidden = true;
}

/**
 * Warn of a query that is unlike anything learned. Without a record of the rows that came, novelty
 * is not measured on them.
 * @param {number|null} novelty
 * @param {any} stats
 */
export function judgeScope(novelty, stats) {
  const far = novelty !== null && novelty > NOVEL && Boolean(stats?.learned?.scored_rows);
  byId("novel").hidden = !far;
  if (far) warn(novelty);
}

/** @param {number} novelty */
function warn(novelty) {
  const box = byId("novel");
  const rule = [
    "Novelty is the share of the rows that came which resembled one of the labels more than this",
    `query does: ${percent(novelty)} here. Above ${percent(NOVEL)}, what was asked may belong to`,
    "none of the labels; search by likeness to see what resembles it.",
  ].join(" ");
  const tip = el("span", { class: "tip", id: "novel-tip", role: "tooltip", text: rule });
  const props = { class: "link", "aria-expanded": "false", "aria-describedby": "novel-tip" };
  const why = button("Why?", props, () => {
    why.setAttribute("aria-expanded", String(box.classList.toggle("open")));
  });
  const title = el("strong", { text: "Perhaps out of scope. " });
  const rows = `${percent(novelty)} of the rows that came`;
  box.classList.remove("open");
  box.replaceChildren(title, `This is more unlike what was learned than ${rows}. `, why, tip);
}
