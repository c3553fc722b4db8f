/** Small ways to make elements. What comes from a server goes in as text, never as markup. */

/**
 * Make an element.
 * @param {string} tag
 * @param {Object<string, any>} [props] attributes, and `text`
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {any}
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child || child === "") node.append(child);
  return node;
}

/**
 * Make a button.
 * @param {string} text
 * @param {Object<string, any>} props
 * @param {() => void} pressed
 * @returns {HTMLButtonElement}
 */
export function button(text, props, pressed) {
  const node = el("button", { type: "button", text, ...props });
  node.addEventListener("click", pressed);
  return node;
}

/**
 * The one element with this id; the page is broken without it.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no #${id}`);
  return node;
}

/**
 * Hear of an event that carries something.
 * @param {EventTarget} target
 * @param {string} type
 * @param {(detail: any) => void} heard
 */
export function hear(target, type, heard) {
  target.addEventListener(type, (event) => heard(/** @type {CustomEvent} */ (event).detail));
}

/**
 * Set text only if it differs, so that screen readers and layout are left alone.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Replace what a node holds only if it differs, so that a button in use stays.
 * @param {Element} node
 * @param {Element[]} children
 */
export function setChildren(node, children) {
  const same = children.every((one, i) => one.isEqualNode(node.children[i]));
  if (!same || node.children.length !== children.length) node.replaceChildren(...children);
}

/** Whether people asked for less movement. */
export function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/**
 * Get a canvas ready to be drawn on in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D}
 */
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [width, height].map((size) => Math.max(1, Math.round(size * ratio)));
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}
