/** The warning that a query is unlike what was learned, with the share of rows it means. */

import { byId, el } from "./dom.js";
import { word } from "./explain.js";

const NOVEL = 0.95; // a query more novel than this is told of

/** Nothing is known of a query yet. */
export function clearScope() {
  byId("novel").hidden = true;
}

/**
 * Warn of a query that is unlike what was learned. An entry with a label is part of what was
 * learned, so it is never called unlike it. Without a record of the rows that came, novelty is not
 * measured on them.
 * @param {number|null} novelty
 * @param {any} stats
 * @param {boolean} labelled whether an entry with a label was asked about
 */
export function judgeScope(novelty, stats, labelled) {
  const measured = novelty !== null && Boolean(stats?.learned?.scored_rows);
  const far = measured && !labelled && novelty > NOVEL;
  byId("novel").hidden = !far;
  if (!far) return;
  const title = el("strong", { text: "Perhaps out of scope. " });
  const share = `${Math.floor(100 * novelty)} % of the rows that came were more familiar. `;
  byId("novel").replaceChildren(title, share, word("novelty", "What does that mean?"));
}
