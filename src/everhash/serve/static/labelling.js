/** Giving an entry a label: pick one that is known, or type a new one. */

import { button, byId, el, setChildren } from "./dom.js";
import { entryWords } from "./faces.js";
import { labelText, labelled, same } from "./texts.js";

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
    setChildren(
      chips,
      fitting.map((label) => chip(label, picked)),
    );
  };
  input.addEventListener("input", show);
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text) picked(labels.meant(text));
    else input.focus();
  });
  labels.keepShowing(chips, show);
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

/**
 * Ask once whether a label that is not known is meant as a new one, and show known ones like it.
 * @param {any} label
 * @param {any[]} near known labels with nearly the same name
 * @param {{entry: string, final: boolean}} about what gets it, and whether there is no way back
 * @returns {Promise<any>} the label that is meant; undefined for none
 */
export function askForNew(label, near, { entry, final }) {
  const dialog = byId("new-dialog");
  byId("new-title").textContent = `${labelText(label)} is not a label yet`;
  const known = near.length ? "Did you mean one of these?" : "No known label has a name like it.";
  const noWayBack = "This collection keeps no features of labelled entries: there is no undo. ";
  byId("new-about").textContent = `For ${entry}. ${final ? noWayBack : ""}${known}`;
  return new Promise((resolve) => {
    /** @type {any} */
    let meant;
    const choose = (/** @type {any} */ chosen) => {
      meant = chosen;
      dialog.close();
    };
    byId("new-near").replaceChildren(...near.map((one) => chip(one, choose)));
    byId("new-yes").onclick = () => choose(label);
    byId("new-no").onclick = () => dialog.close();
    dialog.addEventListener("close", () => resolve(meant), { once: true });
    dialog.showModal();
  });
}

/**
 * Ask whether an entry is to be changed although somebody else has changed it meanwhile.
 * @param {import("./faces.js").Entry} now the entry as it is
 * @param {any[]} wanted the labels it would get; none if they would be taken away
 * @param {{final: boolean}} about whether there is no way back
 * @returns {Promise<boolean>}
 */
export function askAnyway(now, wanted, { final }) {
  const dialog = byId("changed-dialog");
  const noWayBack = final ? " There is no undo." : "";
  byId("changed-title").textContent = `#${now.id} ${labelled(now.labels)} now`;
  const text = "Somebody has changed it since this page showed it. Nothing was done yet.";
  byId("changed-about").textContent = `${text}${noWayBack}`;
  const names = wanted.map(labelText).join(", ");
  byId("changed-yes").textContent = wanted.length ? `Make it ${names}` : "Take its label away";
  return new Promise((resolve) => {
    let yes = false;
    byId("changed-yes").onclick = () => {
      yes = true;
      dialog.close();
    };
    byId("changed-no").onclick = () => dialog.close();
    dialog.addEventListener("close", () => resolve(yes), { once: true });
    dialog.showModal();
  });
}
