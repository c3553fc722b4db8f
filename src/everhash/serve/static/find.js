/** The box that finds entries by id, text or label; those that fit are shown to pick one. */

import { button, byId, setChildren } from "./dom.js";
import { count, labelText, same } from "./texts.js";

const WAIT = 200; // milliseconds after the last letter
const LABELS = 8; // that are offered

/**
 * @param {import("./labels.js").Labels} labels
 * @param {(wanted: {text: string, label?: any}) => Promise<void>} look
 * @param {(down: boolean) => void} pick the first entry that is shown, or go down to it
 */
export function startFinding(labels, look, pick) {
  const [input, chips] = [byId("find"), byId("find-labels")];
  /** @type {any} the label that was chosen */
  let chosen;
  /** The wait for more letters; 0 if none were typed since the last look. */
  let timer = 0;
  let looking = Promise.resolve();

  const lookNow = () => {
    clearTimeout(timer);
    timer = 0;
    looking = look({ text: chosen === undefined ? input.value.trim() : "", label: chosen });
  };
  const choose = (/** @type {any} */ label, /** @type {number} */ at) => {
    chosen = same(chosen) === same(label) ? undefined : label;
    offer();
    chips.children[at]?.focus(); // it was made anew
    lookNow();
  };
  const offer = () => {
    const fitting = fittingLabels(labels, input.value.trim());
    chips.hidden = !fitting.length;
    setChildren(
      chips,
      fitting.map(({ label, entries }, at) => {
        const pressed = String(same(label) === same(chosen));
        const props = { class: "chip", "aria-pressed": pressed, title: "list its entries" };
        return button(`${labelText(label)} · ${count(entries)}`, props, () => choose(label, at));
      }),
    );
  };
  labels.keepShowing(chips, offer);
  labels.addEventListener("counted", () => {
    const at = [...chips.children].indexOf(document.activeElement);
    offer();
    chips.children[at]?.focus();
  });
  input.addEventListener("input", () => {
    chosen = undefined;
    offer();
    clearTimeout(timer);
    timer = setTimeout(lookNow, WAIT);
  });
  input.addEventListener("keydown", async (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    if (timer) lookNow();
    await looking; // what is picked fits what was typed
    pick(event.key === "ArrowDown");
  });
}

/**
 * Labels whose name has the text in it: the same first, then those that begin so.
 * @param {import("./labels.js").Labels} labels
 * @param {string} text
 */
function fittingLabels(labels, text) {
  if (!text) return [];
  const wanted = text.toLowerCase();
  return labels.list
    .map((label) => ({ ...label, at: labelText(label.label).toLowerCase().indexOf(wanted) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at || length(a) - length(b))
    .slice(0, LABELS);
}

/** @param {import("./labels.js").Label} label */
function length({ label }) {
  return labelText(label).length;
}
