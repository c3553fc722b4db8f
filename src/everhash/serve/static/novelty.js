/**
 * When is a query out of scope? Its novelty is its distance to the nearest codeword, in units of
 * the mapping, so it says nothing by itself. The page compares it with what it is for entries that
 * are stored without a label: a query farther from every label than 19 in 20 of those is called
 * novel. Learning moves the scale, so the sample is taken again while the collection learns.
 */

import { same } from "./words.js";

const SAMPLE = 200;
const PARTS = 4; // taken from four places of the stream, which may be sorted
const FEWEST = 20;
const SHARE = 0.95;
const FRESH = 20_000; // milliseconds a sample is good for while the mapping moves

export class Novelty {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.api = api;
    this.taken = -Infinity;
    this.version = null;
    /** @type {{limit: number, of: number}|null} */
    this.scale = null;
    /** @type {Promise<void>|null} */
    this.sampling = null;
  }

  /**
   * The novelty that 19 in 20 unlabelled entries stay below, and of how many; null if too few.
   * @param {any} stats
   */
  async known({ hasher_version: version, entries }) {
    if (version === this.version || performance.now() - this.taken < FRESH) return this.scale;
    this.sampling ??= this.#measure(version, entries).finally(() => (this.sampling = null));
    await this.sampling;
    return this.scale;
  }

  /** @param {any} version @param {number} entries */
  async #measure(version, entries) {
    try {
      this.scale = await this.#sample(entries);
      [this.version, this.taken] = [version, performance.now()];
    } catch {
      // an entry of the sample got its label meanwhile, or is gone: the next search tries again
    }
  }

  /** @param {number} entries of the collection */
  async #sample(entries) {
    const ids = new Map();
    for (let part = 0; part < PARTS; part++) {
      const start = Math.floor((entries * part) / PARTS);
      const page = { unlabelled: true, start, limit: SAMPLE / PARTS };
      for (const { id } of (await this.api.get("entries", page)).entries) ids.set(same(id), id);
    }
    if (ids.size < FEWEST) return null;
    const { matches } = await this.api.post("search", { ids: [...ids.values()], k: 1 });
    const values = matches.map((/** @type {any} */ match) => match.novelty);
    const finite = values.filter(Number.isFinite);
    return finite.length < FEWEST ? null : { limit: quantile(finite, SHARE), of: finite.length };
  }
}

/** @param {number[]} values @param {number} share */
function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  const next = sorted[low + 1] ?? sorted[low];
  return sorted[low] + (at - low) * (next - sorted[low]);
}
