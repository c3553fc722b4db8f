/** The page's colours, read from its style sheet for what is drawn on a canvas. */

const NAMES = ["plus", "minus", "none", "ink", "muted", "line", "accent", "surface"];
/** @type {Object<string, string>|null} */
let known = null;

/** Colours by name, resolved for light or dark. */
export function colours() {
  if (!known) {
    const probe = document.createElement("span");
    document.body.append(probe);
    known = {};
    for (const name of NAMES) {
      probe.style.color = `var(--${name})`;
      known[name] = getComputedStyle(probe).color;
    }
    probe.remove();
  }
  return known;
}

/** Forget them: the theme has changed. */
export function forgetColours() {
  known = null;
}
