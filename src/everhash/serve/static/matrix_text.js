/** The codewords as a table of text, for those who do not see the drawing. */

import { byId, el } from "./dom.js";
import { counted, exact, labelText, share, signs } from "./texts.js";

const STEP = 50;

/** @param {import("./labels.js").Labels} labels */
export function startMatrixText(labels) {
  const [details, body, more] = [byId("matrix-text"), byId("matrix-rows"), byId("matrix-more")];
  const head = byId("matrix-accuracy");
  let shown = STEP;
  const fill = () => {
    if (!details.open) return;
    head.hidden = labels.list.every(({ accuracy }) => accuracy === null);
    const rows = labels.list.slice(0, shown).map((label) => row(label, !head.hidden));
    body.replaceChildren(...rows);
    const left = labels.list.length - rows.length;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(STEP, left)} more of ${counted(left, "label")}`;
  };
  details.addEventListener("toggle", fill);
  more.addEventListener("click", () => {
    shown += STEP;
    fill();
  });
  labels.addEventListener("grown", fill);
  labels.addEventListener("counted", fill);
}

/** @param {import("./labels.js").Label} told @param {boolean} scored whether any label is */
function row({ label, cycle, codeword, entries, lessons, accuracy }, scored) {
  return el(
    "tr",
    {},
    el("th", { scope: "row", text: labelText(label) }),
    el("td", { text: cycle }),
    el("td", { class: "num", text: exact(entries) }),
    el("td", { class: "num", text: exact(lessons) }),
    scored && el("td", { class: "num", text: share(accuracy) }),
    el("td", { class: "signs", text: codeword ? signs(codeword) : "none" }),
  );
}
