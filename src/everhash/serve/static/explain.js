/**
 * Words that explain themselves where they stand.
 *
 * A word is a button with `data-word`: a click, a touch, a key or a pointer that rests on it opens
 * the explanation.
 */

import { byId, el } from "./dom.js";
import { WORDS } from "./words.js";

const RESTS = 250; // milliseconds a pointer rests before the explanation opens

/**
 * A word that explains itself.
 * @param {string} name in `WORDS`
 * @param {string} [text] how it reads here
 * @returns {HTMLButtonElement}
 */
export function word(name, text = WORDS[name][0]) {
  return el("button", { type: "button", class: "word", "data-word": name, text });
}

/** Listen for all words of the page, also those that come later. */
export function startWords() {
  const box = byId("word-box");
  /** @type {HTMLElement|null} */
  let shown = null;
  /** Whether a pointer that only rests has opened it. */
  let passing = false;
  let timer = 0;

  const close = () => {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown?.setAttribute("aria-expanded", "false");
    shown = null;
    box.hidden = true;
  };
  const open = (/** @type {HTMLElement} */ at, /** @type {boolean} */ briefly) => {
    close();
    const [title, text] = WORDS[at.dataset.word ?? ""];
    box.replaceChildren(el("strong", { text: title }), el("span", { text }));
    (at.closest("dialog") ?? document.body).append(box); // above a dialog, inside it
    box.hidden = false;
    at.setAttribute("aria-expanded", "true");
    at.setAttribute("aria-describedby", "word-box");
    [shown, passing] = [at, briefly];
    place(box, at);
  };

  document.addEventListener("click", (event) => {
    const at = wordAt(event.target);
    if (!at) return box.contains(/** @type {Node} */ (event.target)) ? undefined : close();
    event.preventDefault(); // a word within a label does not press what the label is of
    if (at === shown && !passing) close();
    else open(at, false);
  });
  document.addEventListener("pointerover", (event) => {
    const at = event.pointerType === "mouse" ? wordAt(event.target) : null;
    clearTimeout(timer);
    if (at && at !== shown) timer = setTimeout(() => open(at, true), RESTS);
    if (!at && passing && !box.contains(/** @type {Node} */ (event.target))) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !shown) return;
    event.preventDefault(); // a dialog below stays open
    close();
  });
  document.addEventListener("focusin", ({ target }) => {
    if (shown && wordAt(target) !== shown) close();
  });
  addEventListener("resize", close);
}

/** @param {EventTarget|null} target @returns {HTMLElement|null} */
function wordAt(target) {
  return target instanceof Element ? target.closest("[data-word]") : null;
}

/** Below the word, or above it, and never beyond the page. @param {any} box @param {Element} at */
function place(box, at) {
  const word = at.getBoundingClientRect();
  const { width, height } = box.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = Math.max(8, Math.min(word.left, room - width - 8));
  const below = word.bottom + 6;
  const top = below + height > innerHeight && word.top > height + 6 ? word.top - height - 6 : below;
  const fixed = Boolean(at.closest("dialog"));
  box.style.position = fixed ? "fixed" : "absolute";
  box.style.left = `${left + (fixed ? 0 : scrollX)}px`;
  box.style.top = `${top + (fixed ? 0 : scrollY)}px`;
}
