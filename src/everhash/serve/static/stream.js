/**
 * The server's events. They are read with `fetch`, since an `EventSource` cannot send a key.
 *
 * Dispatches each event under its type with the data in `detail`, and `connection` with
 * `{up, waiting}` whenever the connection comes, goes, or will be tried again in `waiting` seconds.
 */

import { ApiError } from "./api.js";

const SILENCE = 40_000; // a ping comes every 15 s
const LONGEST_WAIT = 15;

export class Stream extends EventTarget {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    super();
    this.api = api;
    this.running = false;
  }

  /** Listen for ever, or until a key is missing. */
  async start() {
    if (this.running) return;
    this.running = true;
    for (let failures = 0; ; failures++) {
      try {
        await this.#listen(() => (failures = 0));
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
          this.#tell({ up: false, waiting: null });
          this.running = false; // whoever brings a key starts it again
          return;
        }
      }
      const wait = Math.min(LONGEST_WAIT, 2 ** failures) * (0.75 + Math.random() / 2);
      this.#tell({ up: false, waiting: Math.ceil(wait) });
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    }
  }

  /** @param {{up: boolean, waiting: number|null}} detail */
  #tell(detail) {
    this.dispatchEvent(new CustomEvent("connection", { detail }));
  }

  /** Read one connection to its end. @param {() => void} connected */
  async #listen(connected) {
    const stop = new AbortController();
    const answer = await this.api.fetch("events", { signal: stop.signal });
    connected();
    this.#tell({ up: true, waiting: null });
    const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
    const decoder = new TextDecoder();
    let text = "";
    let alarm = setTimeout(() => stop.abort(), SILENCE);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(alarm);
        alarm = setTimeout(() => stop.abort(), SILENCE);
        const parts = (text + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
        text = parts.pop() ?? "";
        parts.forEach((part) => this.#dispatch(part));
      }
    } finally {
      clearTimeout(alarm);
    }
  }

  /** @param {string} block the lines of one event */
  #dispatch(block) {
    let type = "message";
    const data = [];
    for (const line of block.split(/\r?\n/)) {
      if (line.startsWith("event:")) type = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).trim());
    }
    if (!data.length) return;
    const detail = JSON.parse(data.join("\n"));
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
