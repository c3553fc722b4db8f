/** Asking the server. Errors come as `ApiError`, keys are asked for when the server wants one. */

import { same } from "./texts.js";

const KEY = "everhash-key";
const PLACE = { "Everhash-Place": "page" }; // errors are told in words that fit here
const UNREACHABLE = { message: "the server cannot be reached", hint: "is it running?" };

/** What a server refused, in its own words. */
export class ApiError extends Error {
  /**
   * @param {{message?: string, hint?: string, code?: string}} told
   * @param {number} status 0: no answer
   */
  constructor(told, status) {
    super(told.message || `the server answered ${status}`);
    this.hint = told.hint || "";
    this.code = told.code || ""; // the class in everhash.errors
    this.status = status;
  }
}

export class Api {
  /** @param {URL} root where the service stands */
  constructor(root) {
    this.root = root;
    /** Called when a key is missing or not enough; tells whether to try again. */
    this.askForKey = async (/** @type {ApiError} */ _error) => false;
  }

  get key() {
    return sessionStorage.getItem(KEY) || "";
  }

  set key(value) {
    sessionStorage.setItem(KEY, value);
  }

  /**
   * Ask, and ask again if a key was given meanwhile.
   * @param {string} path
   * @param {RequestInit} [options]
   * @returns {Promise<Response>}
   */
  async fetch(path, options = {}) {
    for (;;) {
      const key = this.key;
      const answer = await this.#send(path, options, key);
      if (answer.ok) return answer;
      const error = await errorOf(answer);
      // without a key, a 403 is about something else: a request that came from elsewhere
      const locked = error.status === 401 || (error.status === 403 && key !== "");
      if (!locked || (key === this.key && !(await this.askForKey(error)))) throw error;
    }
  }

  /** @param {string} path @param {RequestInit} options @param {string} key */
  async #send(path, options, key) {
    const headers = new Headers({ ...PLACE, .../** @type {any} */ (options.headers) });
    if (key) headers.set("Authorization", `Bearer ${key}`);
    try {
      return await fetch(new URL(path, this.root), { ...options, headers, cache: "no-store" });
    } catch {
      throw new ApiError(UNREACHABLE, 0);
    }
  }

  /**
   * @param {string} path
   * @param {Object<string, any>} [params]
   * @returns {Promise<any>}
   */
  async get(path, params = {}) {
    return read(await this.fetch(withQuery(path, params)));
  }

  /**
   * @param {string} path
   * @param {any} [body]
   * @returns {Promise<any>}
   */
  async post(path, body = {}) {
    const headers = { "Content-Type": "application/json" };
    return read(await this.fetch(path, { method: "POST", headers, body: write(body) }));
  }

  /**
   * Show an entry's thumbnail. An image cannot send a key, so with one its bytes are fetched.
   * @param {HTMLImageElement} image
   * @param {any} id
   */
  async showThumbnail(image, id) {
    const path = withQuery("thumbnail", { id: same(id), json: true });
    if (!this.key) {
      image.src = new URL(path, this.root).href;
      return;
    }
    try {
      const url = URL.createObjectURL(await (await this.fetch(path)).blob());
      image.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
      image.src = url;
    } catch {
      image.alt = "no picture";
    }
  }
}

/** @param {string} path @param {Object<string, any>} params */
function withQuery(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) query.set(name, String(value));
  return query.size ? `${path}?${query}` : path;
}

/** Read JSON; ids beyond what a number holds exactly become BigInt. @param {Response} answer */
async function read(answer) {
  // @ts-ignore: the third argument is newer than most type libraries
  return JSON.parse(await answer.text(), (_name, value, context) => {
    const inexact = typeof value === "number" && !Number.isSafeInteger(value);
    return inexact && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
  });
}

/** @param {any} value */
function write(value) {
  return JSON.stringify(value, (_name, part) =>
    // @ts-ignore: whoever reads BigInt as above can write it so
    typeof part === "bigint" ? JSON.rawJSON(String(part)) : part,
  );
}

/** @param {Response} answer */
async function errorOf(answer) {
  try {
    return new ApiError((await answer.json()).error ?? {}, answer.status);
  } catch {
    return new ApiError({}, answer.status);
  }
}
