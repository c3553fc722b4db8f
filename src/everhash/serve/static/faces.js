/** What an entry looks like: its thumbnail, else its text, else its code as a pattern. */

import { pattern } from "./codes.js";
import { el } from "./dom.js";
import { word } from "./explain.js";
import { labelText, payloadText } from "./texts.js";

/**
 * @typedef {{id: any, labels: any[], home: number|null, payload: any, thumbnail: boolean,
 *   guess?: any, code?: number[]|null}} Entry
 */

/**
 * @param {Entry} entry
 * @param {{api: import("./api.js").Api, labels: import("./labels.js").Labels}} page
 * @param {number} size
 * @returns {HTMLElement}
 */
export function face(entry, page, size) {
  const text = entry.thumbnail ? "" : payloadText(entry.payload);
  return text ? el("span", { class: "excerpt", text }) : picture(entry, page, size);
}

/**
 * The same where its text stands beside it: its thumbnail, else its code.
 * @param {Entry} entry
 * @param {{api: import("./api.js").Api, labels: import("./labels.js").Labels}} page
 * @param {number} size
 * @returns {HTMLElement}
 */
export function picture(entry, page, size) {
  if (entry.thumbnail) {
    const props = { class: "thumb", alt: "", width: size, height: size, loading: "lazy" };
    const image = el("img", props);
    page.api.showThumbnail(image, entry.id);
    return image;
  }
  const word = entry.code?.map((bit) => (bit ? 1 : -1)) ?? page.labels.word(entry.labels[0]);
  return word ? pattern(word, size) : el("span", { class: "excerpt", text: `#${entry.id}` });
}

/** An entry's labels in a line. @param {Entry} entry */
export function labelsText(entry) {
  return entry.labels.length ? entry.labels.map(labelText).join(", ") : "unlabelled";
}

/** An entry's labels as a chip, or the one it is taken for. @param {Entry} entry */
export function labelsChip(entry) {
  const guess = entry.labels.length ? null : (entry.guess ?? null);
  if (guess === null) {
    const look = entry.labels.length ? "chip plainly" : "chip plainly none";
    return el("span", { class: look, text: labelsText(entry), title: labelsText(entry) });
  }
  const chip = word("guess", `taken for ${labelText(guess)}`);
  chip.classList.add("chip", "plainly", "none");
  return chip;
}

/** An entry in words, for names of buttons and the like. @param {Entry} entry */
export function entryWords(entry) {
  const text = payloadText(entry.payload);
  return `entry ${entry.id}, ${labelsText(entry)}${text ? `, ${text}` : ""}`;
}
