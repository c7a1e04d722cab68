// Elements, menus and small words of the page. Names are hostile text: they only ever become text
// nodes. Styles are set by class, or property by property, as the content security policy wants.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element with attributes, listeners (functions) and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else if (key === "class") element.className = value;
    else if (key === "value") /** @type {any} */ (element).value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** @param {string} id @returns {HTMLElement} */
export const $ = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * A button; `title` is its accessible name where its text is a sign.
 * @param {string} text @param {(event: MouseEvent) => void} click
 * @param {Record<string, any>} [attributes]
 */
export const button = (text, click, attributes) =>
  h("button", { type: "button", click, ...attributes }, text);

/** Says something for a moment, aloud too. @param {string} text */
export function toast(text) {
  $("live").textContent = text;
  const box = h("div", { class: "toast" }, text);
  document.body.append(box);
  setTimeout(() => box.remove(), 2600);
}

/** @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    // Without permission: show it, selected, for the keyboard.
    const field = h("textarea", { readonly: true, rows: 4, "aria-label": what }, text);
    const box = h("dialog", { class: "box", close: () => box.remove() },
      h("h2", null, what), field,
      h("form", { method: "dialog" }, h("button", null, "Close")));
    document.body.append(box);
    box.showModal();
    field.select();
  }
}

/**
 * A small menu below a button; closes at Escape, at a click elsewhere and after a choice.
 * @param {HTMLElement} anchor
 * @param {(Child | {text: string, hint?: string, run: () => void})[]} items
 */
export function menu(anchor, items) {
  document.querySelector(".menu")?.remove();
  const close = () => {
    box.remove();
    document.removeEventListener("pointerdown", outside, true);
    anchor.setAttribute("aria-expanded", "false");
  };
  const outside = (/** @type {Event} */ event) => {
    if (!box.contains(/** @type {Node} */ (event.target))) close();
  };
  const box = h("div", { class: "menu", role: "dialog", "aria-label": anchor.title || anchor.textContent });
  for (const item of items) {
    if (item && typeof item === "object" && "run" in item) {
      box.append(h("button", { type: "button", click: () => { close(); item.run(); } },
        h("span", null, item.text), item.hint ? h("small", null, item.hint) : null));
    } else if (item) box.append(item instanceof Node ? item : String(item));
  }
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { close(); anchor.focus(); }
    const all = /** @type {HTMLElement[]} */ ([...box.querySelectorAll("button, input, select, a")]);
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && !(event.target instanceof HTMLSelectElement)) {
      const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
      all[(at + step + all.length) % all.length]?.focus();
      event.preventDefault();
    }
    event.stopPropagation();
  });
  document.body.append(box);
  const place = anchor.getBoundingClientRect(), width = box.offsetWidth;
  box.style.top = `${place.bottom + 4}px`;
  box.style.left = `${Math.max(8, Math.min(place.left, innerWidth - width - 8))}px`;
  box.style.maxHeight = `${innerHeight - place.bottom - 16}px`;
  anchor.setAttribute("aria-expanded", "true");
  setTimeout(() => document.addEventListener("pointerdown", outside, true));
  /** @type {HTMLElement | null} */ (box.querySelector("button, input, select"))?.focus();
  return close;
}

/** Puts the tip beside a point of the window. @param {Child[] | null} content @param {number} [x] @param {number} [y] */
export function tip(content, x = 0, y = 0) {
  const box = $("tip");
  box.hidden = !content;
  if (!content) return;
  box.replaceChildren(...h("div", null, ...content).childNodes);
  const { offsetWidth: w, offsetHeight: t } = box;
  box.style.left = `${Math.max(4, x + 14 + w > innerWidth ? x - w - 10 : x + 14)}px`;
  box.style.top = `${Math.max(4, y + 18 + t > innerHeight ? y - t - 10 : y + 18)}px`;
}

/** Colours of the style sheet for what is painted. @param {string} name */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/**
 * A canvas as large as its box, at the screen's resolution.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
export function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1, w = Math.max(1, Math.round(width * ratio));
  const t = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== t) canvas.height = t;
  canvas.style.height = `${height}px`;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** The page has its first answer. */
export const answered = () => { delete $("main").dataset.fresh; };

/** A sparkline of numbers from 0 up. @param {number[]} values @param {number} width @param {number} height @param {string} what */
export function spark(values, width, height, what) {
  const canvas = h("canvas", { class: "spark", role: "img", "aria-label": what });
  canvas.style.width = `${width}px`;
  const draw = () => {
    const pen = sized(canvas, width, height), top = Math.max(1e-9, ...values), n = values.length;
    pen.fillStyle = colour("area");
    for (let i = 0; i < n; i++) {
      const tall = values[i] > 0 ? Math.max(1, values[i] / top * (height - 1)) : 0;
      pen.fillRect(i / n * width, height - tall, Math.max(1, width / n), tall);
    }
  };
  canvas.addEventListener("tare-look", draw);
  draw();
  return canvas;
}

/** A share as a bar with its figure beside it. @param {number} share @param {string} text */
export function meter(share, text) {
  const fill = h("i");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "meter" }, h("b", { "aria-hidden": "true" }, fill), h("span", null, text));
}
