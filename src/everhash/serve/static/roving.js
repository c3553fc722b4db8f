/** One stop of the tab key for a grid of buttons; arrow keys move within it. */

/**
 * @param {HTMLElement} grid
 * @param {string} selector of the buttons
 * @returns {() => void} call it when the buttons have changed
 */
export function startRoving(grid, selector) {
  const items = () => /** @type {HTMLElement[]} */ ([...grid.querySelectorAll(selector)]);
  /** @type {HTMLElement|null} */
  let stop = null;
  const stopAt = (/** @type {HTMLElement|null} */ chosen) => {
    stop = chosen;
    for (const item of items()) item.tabIndex = item === chosen ? 0 : -1;
  };
  grid.addEventListener("focusin", ({ target }) => {
    const item = /** @type {HTMLElement} */ (target).closest(selector);
    if (item) stopAt(/** @type {HTMLElement} */ (item));
  });
  grid.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = at < 0 ? undefined : all[led(all, at, event.key)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  return () => stopAt(stop?.isConnected ? stop : (items()[0] ?? null));
}

/**
 * Where a key leads, as the grid is laid out now.
 * @param {HTMLElement[]} all
 * @param {number} at
 * @param {string} key
 */
function led(all, at, key) {
  const line = (/** @type {HTMLElement} */ item) => Math.round(item.getBoundingClientRect().top);
  const columns = all.filter((item) => line(item) === line(all[0])).length;
  /** @type {Object<string, number>} */
  const places = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    ArrowUp: at - columns,
    ArrowDown: at + columns,
    Home: 0,
    End: all.length - 1,
  };
  return places[key] ?? -1;
}
