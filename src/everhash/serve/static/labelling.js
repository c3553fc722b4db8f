/** Giving an entry a label: pick one that is known, or type a new one. */

import { button, byId, el } from "./dom.js";
import { entryWords } from "./faces.js";
import { labelText, same } from "./words.js";

const CHIPS = 12;
const INPUT = {
  type: "text",
  maxlength: 256,
  autocomplete: "off",
  spellcheck: "false",
  placeholder: "or type one",
  "aria-label": "label, known or new",
};

/**
 * @param {import("./labels.js").Labels} labels
 * @param {any[]} likely labels to offer first
 * @param {(label: any) => void} picked
 * @returns {HTMLElement}
 */
export function picker(labels, likely, picked) {
  const chips = el("div", { class: "chips", role: "group", "aria-label": "known labels" });
  const input = el("input", INPUT);
  const submit = el("button", { type: "submit", class: "small", text: "Label it" });
  const form = el("form", { class: "typed", novalidate: true }, input, submit);
  const show = () => {
    const fitting = offered(labels, likely, input.value.trim());
    chips.replaceChildren(...fitting.map((label) => chip(label, picked)));
  };
  input.addEventListener("input", show);
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text) picked(labels.meant(text));
    else input.focus();
  });
  show();
  return el("div", { class: "picker" }, chips, form);
}

/** @param {any} label @param {(label: any) => void} picked */
function chip(label, picked) {
  const text = labelText(label);
  return button(text, { class: "chip", title: text }, () => picked(label));
}

/**
 * Likely labels first, then those with most entries; with a text, those that contain it.
 * @param {import("./labels.js").Labels} labels
 * @param {any[]} likely
 * @param {string} text
 */
function offered(labels, likely, text) {
  const order = new Map(likely.map((label, i) => [same(label), i]));
  const wanted = text.toLowerCase();
  return labels.list
    .filter(({ label }) => labelText(label).toLowerCase().includes(wanted))
    .map(({ label, entries }) => ({ label, entries, rank: order.get(same(label)) ?? CHIPS }))
    .sort((a, b) => a.rank - b.rank || b.entries - a.entries)
    .slice(0, CHIPS)
    .map(({ label }) => label);
}

/**
 * Ask for an entry's label in a dialog.
 * @param {import("./faces.js").Entry} entry
 * @param {import("./labels.js").Labels} labels
 * @param {any[]} likely
 * @param {(label: any) => void} picked
 */
export function askForLabel(entry, labels, likely, picked) {
  const dialog = byId("label-dialog");
  byId("label-title").textContent = `What is ${entryWords(entry)}?`;
  const choose = (/** @type {any} */ label) => {
    dialog.close();
    picked(label);
  };
  byId("label-picker").replaceChildren(picker(labels, likely, choose));
  byId("label-no").onclick = () => dialog.close();
  dialog.showModal();
}
