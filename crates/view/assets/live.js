// What the page of a running JVM does in it: parts of the recording on and off, and a method
// measured exactly. What is woven belongs to the server, which puts it back when the page goes.

import { button, h, menu, meter, toast } from "./dom.js";
import { get, post } from "./api.js";
import { count, short, time } from "./figures.js";
import { go, state } from "./state.js";

/**
 * @typedef {{number: number, method: string, below: boolean, state: "weaves" | "counts" | "over" | "refused", methods: number, lasts_ns: number, notes: string[], figures?: any, rows?: any[] | null, more?: number}} Exactly
 * @type {{now: Exactly | null, figures: Exactly | null, asking: boolean, refused: {method: string, text: string} | null, switched: number}}
 */
const live = { now: null, figures: null, asking: false, refused: null, switched: 0 };

const goes = () => live.now?.state === "weaves" || live.now?.state === "counts";
const steered = () => state.run.source === "live" && Array.isArray(state.run.parts);

/** When a part was switched on or off last; its pages come with its figures. */
export const switched = () => live.switched;

/** @param {Record<string, any>} what @returns {Promise<boolean>} */
async function wish(what) {
  live.refused = null;
  if (what.do === "measure") live.now = /** @type {any} */ ({ ...what, state: "weaves", notes: [], lasts_ns: 0, number: 0 });
  draw();
  try {
    const answer = await post("live", what);
    live.now = answer.exactly;
    if (answer.parts) state.run.parts = answer.parts;
    return true;
  } catch (/** @type {any} */ error) {
    if (what.do === "measure") { live.now = null; live.refused = { method: what.method, text: error.message }; }
    else toast(error.message);
    return false;
  } finally { draw(); }
}

/** A tick told how it stands. @param {Exactly | null} now */
export async function heard(now) {
  if (!now && !live.now) return;
  const over = live.now?.state !== now?.state;
  live.now = now;
  if ((goes() || over || live.figures?.number !== now?.number) && !live.asking && !document.hidden) {
    live.asking = true;
    try { live.figures = await get("exactly"); } catch { /* the next tick asks again */ } finally { live.asking = false; }
  }
  draw();
}

// ---- what is recorded ----------------------------------------------------------------------------

/** The button of the head. @returns {HTMLElement | string} */
export function recordButton() {
  if (!steered()) return "";
  return button("Record", (event) => recordMenu(/** @type {HTMLElement} */ (event.currentTarget)), { title: "What is recorded of the JVM", "aria-haspopup": "dialog" });
}

/** @param {HTMLElement} anchor */
function recordMenu(anchor) {
  menu(anchor, [h("p", { class: "dim" }, "What is recorded from now on"),
    ...state.run.parts.map((/** @type {{part: string, about: string, on: boolean}} */ one) => {
      const box = h("input", { type: "checkbox", checked: one.on, change: async () => {
        box.disabled = true;
        const on = box.checked;
        if (await wish({ do: "switch", part: one.part, on })) {
          live.switched = Date.now();
          toast(on ? `${one.about}: from now on` : `${one.about}: resting`);
        }
        box.checked = Boolean(state.run.parts.find((/** @type {any} */ known) => known.part === one.part)?.on);
        box.disabled = false;
      } });
      return h("label", { "data-part": one.part }, box, one.about);
    }), h("hr"), h("p", { class: "dim" }, "Collections, safepoints and compilers always are. What was recorded stays.")]);
}

/** What is woven at this moment, on every page. */
export const woven = h("output", { class: "woven", "data-woven": "", hidden: true });

// ---- a method, exactly ---------------------------------------------------------------------------

/** @type {Set<HTMLElement>} */
const boxes = new Set();

/** A box that shows what is known exactly of a method, or measures it. @param {string} method @param {string} kind @returns {HTMLElement | string} */
export function exactly(method, kind) {
  if (!steered() && live.figures?.method !== method || !"jd".includes(kind) || /[\s:]/.test(method)) return "";
  const box = h("section", { class: "exactly", "data-exactly": method });
  boxes.add(box);
  fill(box);
  return box;
}

/** Exact figures of methods, for lists. @param {string} method @returns {{count: number, self: number | null, total: number} | null} */
export function exact(method) {
  const all = live.figures;
  if (!all?.figures) return null;
  if (!all.below) return method === all.method ? { count: all.figures.count, self: null, total: all.figures.total_ns } : null;
  const row = all.rows?.find((one) => one.name === method);
  return row ? { count: row.count, self: row.self_ns, total: row.total_ns } : null;
}

export const hasExact = () => Boolean(live.figures?.figures);

function draw() {
  for (const box of boxes) {
    if (box.isConnected) fill(box);
    else boxes.delete(box);
  }
  woven.hidden = !goes();
  const words = goes() && live.now ? `${live.now.state === "weaves" ? "weaving" : "counting"} ${short(live.now.method)}${live.now.below ? " and below" : ""}` : "";
  if (woven.dataset.words === words) return;
  woven.dataset.words = words;
  woven.replaceChildren(words, button("Take it back", () => wish({ do: "take-back" })));
}

/** @param {HTMLElement} box */
function fill(box) {
  const method = box.dataset.exactly || "", { now, figures: all } = live, known = exact(method), mine = now?.method === method;
  const key = JSON.stringify([goes(), mine && now, known, live.refused]);
  if (box.dataset.drawn === key) return;
  box.dataset.drawn = key;
  const held = box.contains(document.activeElement) ? document.activeElement?.textContent : null;
  const line = (/** @type {string} */ name, /** @type {string} */ text, /** @type {number} */ value) => {
    const cell = h("b", null, text);
    Object.assign(cell.dataset, { exact: name, value: String(value) });
    return [h("dt", null, name), h("dd", null, cell)];
  };
  const figures = known && all ? all.figures : null, alone = figures && !all?.below;
  const lasts = mine && now ? now.lasts_ns : all?.lasts_ns || 0;
  box.replaceChildren(h("h3", null, "Exactly", known ? h("small", { class: "dim" }, ` every call, for ${time(Math.round(lasts / 1e8) * 1e8)}${goes() ? "" : "; its code is as it was"}`) : ""),
    known ? h("dl", null, ...line("calls", count(known.count), known.count), ...(known.count ? [
      ...line("total", time(known.total), known.total), ...line("mean", time(known.total / known.count), known.total / known.count),
      ...(known.self === null ? [] : line("itself", `${time(known.self)}, ${time(known.self / known.count)} a call`, known.self)),
      ...(alone ? [h("dt", null, "least, most"), h("dd", null, `${time(figures.min_ns)}, ${time(figures.max_ns)}`),
        h("dt", null, "half, 99 %"), h("dd", null, `within ${time(figures.p50_ns)}, ${time(figures.p99_ns)}`)] : [])] : [])) : "",
    mine && now?.state === "weaves" ? h("p", { class: "dim" }, "Being woven …") : "",
    mine && now?.state === "counts" && !known ? h("p", { class: "dim" }, "No call has ended yet.") : "",
    ...(mine && now ? now.notes.map((text) => h("p", { class: now.state === "refused" ? "problem" : "dim", role: now.state === "refused" ? "alert" : null }, text)) : []),
    live.refused?.method === method ? h("p", { class: "problem", role: "alert" }, live.refused.text) : "",
    !steered() ? "" : h("div", { class: "buttons" }, ...(goes() && mine ? [button("Take it back", () => wish({ do: "take-back" }))] : [
      button(known ? "Measure again" : "Measure exactly", () => wish({ do: "measure", method }), { title: "Weave this method, and count and time every call of it" }),
      button("And all below", () => wish({ do: "measure", method, below: true }), { title: "Weave this method and all that it calls" })])),
    all?.below && all.method === method && all.rows?.length ? rows(all) : "");
  if (held) [...box.querySelectorAll("button")].find((one) => one.textContent === held)?.focus({ preventScroll: true });
}

/** @param {Exactly} all */
function rows(all) {
  const list = all.rows || [], shown = list.slice(0, 12), most = Math.max(1, list[0].self_ns);
  return h("div", null, h("h3", null, "Below it", h("small", { class: "dim" }, " by what each takes itself")), h("ul", { class: "bars" }, ...shown.map((row) => {
    const item = h("li", null, meter(row.self_ns / most, time(row.self_ns)), button(short(row.name), () => go("sandwich", { method: row.name }), { class: "name link", title: row.name }), h("small", { class: "dim" }, `${count(row.count)} ×`));
    Object.assign(item.dataset, { below: row.name, value: String(row.count) });
    return item;
  })), list.length > shown.length ? h("p", { class: "dim" }, `and ${count(list.length - shown.length + (all.more || 0))} more, in the list of methods`) : "");
}
