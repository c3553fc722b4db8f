/** What a search has found, as cards, and how the ranking moved since it was asked before. */

import { agreement, explained, strip } from "./codes.js";
import { button, byId, calm, el, setText } from "./dom.js";
import { word } from "./explain.js";
import { entryWords, labelsChip, picture } from "./faces.js";
import { askForLabel, picker } from "./labelling.js";
import { cosineText, entriesCounted, labelText, payloadText, same } from "./texts.js";
import { WAYS, scoreMeaning, scoreText } from "./texts.js";

/**
 * @typedef {import("./faces.js").Entry} Entry
 * @typedef {{id: any, score: number|null, likeness: number|null, label: any, guess: any,
 *   explanation?: import("./codes.js").Explanation}} Found
 * @typedef {Map<string, number>} Ranks of entries by their ids
 * @typedef {{search: (entry: Entry) => void, likely: (entry: Entry) => Promise<any[]>,
 *   label: (entry: Entry, label: any) => void, unlabel: (entry: Entry) => void}} Deeds what can be
 *   done with an entry
 */

export class Answers {
  /** @param {any} page @param {Deeds} deeds */
  constructor(page, deeds) {
    this.page = page;
    this.deeds = deeds;
    /** @type {Ranks|null} of the answer on show */
    this.ranks = null;
  }

  /** Say that something is under way, or went wrong. @param {string} text @param {boolean} wrong */
  say(text, wrong = false) {
    const note = byId("answers-note");
    note.hidden = !text;
    note.classList.toggle("error", wrong);
    note.setAttribute("role", wrong ? "alert" : "status");
    setText(note, text);
    if (wrong) this.clear();
  }

  clear() {
    byId("query").hidden = true;
    byId("novel").hidden = true;
    byId("cards").replaceChildren();
    setText(byId("answers-said"), "");
    byId("answers-how").replaceChildren();
    this.ranks = null;
  }

  /**
   * Show what was found, and the query above it.
   * @param {Node[]} query
   * @param {Found[]} found
   * @param {Map<string, Entry>} entries by id
   * @param {{by: string, again: boolean}} how the way of searching, and whether the same was asked
   *   before
   */
  show(query, found, entries, { by, again }) {
    const before = again ? this.ranks : null;
    const places = positions();
    this.ranks = new Map(found.map(({ id }, rank) => [same(id), rank]));
    byId("query").hidden = false;
    byId("query").replaceChildren(...query);
    const cards = found.map((one, rank) => {
      const entry = entries.get(same(one.id)) ?? unknown(one);
      const moved = before && movement(before.get(same(one.id)), rank);
      return this.#card(one, rank, entry, [moved, ...scores(one, by)]);
    });
    byId("cards").replaceChildren(...cards);
    found.forEach((one, rank) => explain(cards[rank], one));
    this.say(found.length ? "" : "Nothing found: there are no entries yet.");
    const change = before ? `, asked again: ${changes(found, before)}` : "";
    setText(byId("answers-said"), `${entriesCounted(found.length)} found${change}`);
    byId("answers-how").replaceChildren(...(found.length ? howFound(by, found) : []));
    if (before) slide(places);
  }

  /** @param {Found} found @param {number} rank @param {Entry} entry @param {any[]} told */
  #card(found, rank, entry, told) {
    const first = el(
      "p",
      { class: "first" },
      el("span", { class: "rank", text: String(rank + 1) }),
      labelsChip(entry),
      ...told,
    );
    const second = el("p", { class: "second", text: `#${found.id} ${payloadText(entry.payload)}` });
    const [search, label] = [this.#searchButton(entry), this.#labelButton(entry)];
    const deeds = el("div", { class: "deeds" }, search, label, this.#unlabelButton(entry));
    const body = el("div", { class: "body" }, first, second, el("div", { class: "why" }), deeds);
    const facing = el("div", { class: "facing" }, picture(entry, this.page, 64));
    return el("li", { class: "card", "data-id": same(found.id) }, facing, body);
  }

  /** @param {Entry} entry */
  #searchButton(entry) {
    const props = { class: "link", "aria-label": `search by ${entryWords(entry)}` };
    return button("Search by this", props, () => this.deeds.search(entry));
  }

  /** @param {Entry} entry */
  #labelButton(entry) {
    if (entry.labels.length || this.page.readonly) return null;
    const props = { class: "link", "aria-label": `label ${entryWords(entry)}` };
    return button("Label…", props, async () => {
      const likely = await this.deeds.likely(entry).catch(() => []);
      askForLabel(entry, this.page.labels, likely, (label) => this.deeds.label(entry, label));
    });
  }

  /** Labels can be taken away where features are kept to code entries by. @param {Entry} entry */
  #unlabelButton(entry) {
    const kept = this.page.stats?.keep_features === "all";
    if (!entry.labels.length || this.page.readonly || !kept) return null;
    const props = { class: "link", "aria-label": `take the label of ${entryWords(entry)} away` };
    return button("Take label away", props, () => this.deeds.unlabel(entry));
  }

  /**
   * The query as an entry of the collection, with a picker if it has no label.
   * @param {Entry} entry
   * @param {any[]} likely
   * @param {(Node|string)[]} how it was asked, if that needs a word
   */
  queryEntry(entry, likely, how) {
    const title = el("strong", { text: `Nearest to #${entry.id}` });
    const first = el("p", { class: "first" }, title, labelsChip(entry));
    const about = el("div", { class: "body" }, first);
    const text = payloadText(entry.payload);
    if (text) about.append(el("p", { class: "second", text }));
    if (how.length) about.append(el("p", { class: "second" }, ...how));
    if (entry.home !== null) {
      const home = [word("home", "home"), " in ", word("cycle", `cycle ${entry.home}`)];
      about.append(el("p", { class: "second" }, ...home));
    }
    if (!entry.labels.length && !this.page.readonly) {
      const pick = (/** @type {any} */ label) => this.deeds.label(entry, label);
      const prompt = el("p", { class: "prompt", text: "What is it?" });
      about.append(prompt, picker(this.page.labels, likely, pick));
    }
    const unlabel = this.#unlabelButton(entry);
    if (unlabel) about.append(el("div", { class: "deeds" }, unlabel));
    return [el("div", { class: "facing" }, picture(entry, this.page, 88)), about];
  }
}

/**
 * An entry of which no more is known than that it was found.
 * @param {Found} found
 * @returns {Entry}
 */
function unknown({ id, label, guess }) {
  const labels = label === null ? [] : [label];
  return { id, labels, guess, home: null, payload: null, thumbnail: false };
}

/**
 * How it was searched and what the figures mean, in words that explain themselves.
 * @param {string} by the way of searching
 * @param {Found[]} found
 */
function howFound(by, found) {
  const parts = ["by ", word(by, WAYS[by] ?? by), `: ${scoreMeaning(by)}`];
  const beside = by !== "likeness" && found.some(({ likeness }) => likeness !== null);
  if (beside) parts.push("; beside it ", word("likeness", "likeness"));
  const explained = found.some(({ explanation }) => explanation);
  if (explained) parts.push("; below, ", word("bits", "bits"));
  return parts;
}

/** The score of a match, and beside it how alike it is. @param {Found} found @param {string} by */
function scores({ score, likeness }, by) {
  const props = { class: "score", text: scoreText(score, by) };
  const shown = [el("span", props)];
  if (likeness !== null && by !== "likeness") {
    shown.push(el("span", { class: "likeness", text: `alike ${cosineText(likeness)}` }));
  }
  return shown;
}

/** What asking again has changed. @param {Found[]} found @param {Ranks} before */
function changes(found, before) {
  const was = found.map(({ id }) => before.get(same(id)));
  const fresh = was.filter((rank) => rank === undefined).length;
  const moved = was.filter((rank, now) => rank !== undefined && rank !== now).length;
  const parts = [moved && `${moved} moved`, fresh && `${fresh} new`].filter(Boolean);
  return parts.join(", ") || "all where they were";
}

/** @param {number|undefined} was @param {number} now */
function movement(was, now) {
  if (was === now) return null;
  if (was === undefined) return el("span", { class: "moved new", text: "new" });
  const [way, sign] = was > now ? ["up", "▲"] : ["down", "▼"];
  const steps = Math.abs(was - now);
  const props = { class: `moved ${way}`, role: "img", "aria-label": `${way} ${steps}` };
  return el("span", { ...props, text: `${sign} ${steps}` });
}

/** Say why, once the card has its width. @param {HTMLElement} card @param {Found} found */
function explain(card, { explanation }) {
  if (!explanation) return;
  const { label } = explanation;
  const as = label === null ? "its own bits" : `word of ${labelText(label)}`;
  const text = `${agreement(explanation)} · ${as}`;
  const title = `${explanation.why}; ${explained(explanation)}`;
  const words = el("p", { class: "agreement", title, text });
  const why = /** @type {HTMLElement} */ (card.querySelector(".why"));
  why.append(words);
  words.before(strip(explanation, why));
}

/** @returns {HTMLElement[]} */
function cards() {
  return [...byId("cards").children];
}

function positions() {
  return new Map(cards().map((card) => [card.dataset.id, card.getBoundingClientRect()]));
}

/** Let cards slide from where they stood. @param {Map<any, DOMRect>} places */
function slide(places) {
  if (calm()) return;
  for (const card of cards()) {
    const [was, is] = [places.get(card.dataset.id), card.getBoundingClientRect()];
    const from = was ? `translate(${was.left - is.left}px, ${was.top - is.top}px)` : "scale(.96)";
    const frames = [{ transform: from, opacity: was ? 1 : 0 }, { transform: "none", opacity: 1 }];
    card.animate(frames, { duration: 350, easing: "ease-out" });
  }
}
