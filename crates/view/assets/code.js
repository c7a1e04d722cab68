// The source of a method, or its bytecode, with figures beside the lines; a text is only ever text.

import { button, h } from "./dom.js";
import { Panel, get } from "./api.js";
import { amount, percent } from "./figures.js";
import { go, set, state, view } from "./state.js";

/** @typedef {{n: number | null, text: string, self: number | null, total: number | null, is_own: boolean}} Line */

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function sourcePage(host) {
  const method = () => state.query.get("method") || "";
  const title = h("h2", { class: "name wrap" }), origin = h("p", { class: "dim wrap" }), main = h("div", { class: "code-box", tabindex: 0, "aria-label": "Lines, with figures" });
  const said = h("p", { class: "dim" });
  host.append(h("div", { class: "tools" }, title, h("div", { class: "buttons" },
    button("Next costly line", () => step(1), { title: "n, and N for the one before" }), button("Sandwich", () => go("sandwich", { method: method() })),
    button("Flame graph", () => go("flame", { q: method() })))), h("div", { class: "code-about" }, origin, said), main);
  let shown = "";
  const panel = new Panel(main, (signal) => get("source", view({ method: method(), first: state.query.get("first") }), signal), (answer) => {
    title.textContent = answer.name;
    origin.textContent = answer.origin;
    said.textContent = answer.unlined ? "No figures of lines: the recording does not tell them." : "Bars: what a line takes itself; beside them, with all that it calls.";
    const lines = /** @type {Line[]} */ (answer.lines), most = Math.max(1, ...lines.map((one) => one.self || 0));
    const top = main.scrollTop, more = (/** @type {string} */ words, /** @type {number} */ first) =>
      h("p", { class: "code-more" }, button(words, () => set({ first: String(Math.max(0, first)) }), { class: "link" }));
    const end = answer.first + lines.length;
    main.replaceChildren(answer.first > 0 ? more("Lines before", answer.first - 1400) : "",
      h("table", { class: "code", "aria-label": "Lines" }, h("thead", null, h("tr", null, ...["itself", "total", "line", "text"].map((one) => h("th", { scope: "col" }, one)))),
        h("tbody", null, ...lines.map((one, i) => row(one, answer, most, answer.first + i)))),
      end < answer.all ? more("Lines after", end - 60) : "");
    if (shown === `${answer.name} ${answer.first}`) main.scrollTop = top;
    else {
      shown = `${answer.name} ${answer.first}`;
      const costly = [...main.querySelectorAll("tr.own")].sort((a, b) => Number(/** @type {HTMLElement} */ (b).dataset.self) - Number(/** @type {HTMLElement} */ (a).dataset.self))[0];
      (costly || main.querySelector("tr.begins"))?.scrollIntoView({ block: "center" });
    }
  });
  const step = (/** @type {number} */ by) => {
    const all = /** @type {HTMLElement[]} */ ([...main.querySelectorAll("tr[data-self]")]), at = all.findIndex((one) => one.classList.contains("at"));
    all[at]?.classList.remove("at");
    const next = all[(at + by + all.length) % all.length];
    next?.classList.add("at");
    next?.scrollIntoView({ block: "center" });
  };
  return {
    update: (why) => { title.textContent = method() || "No method is chosen"; panel.ask(why === "epoch" ? "epoch" : "view"); },
    key: (event) => (event.key === "n" || event.key === "N") && (step(event.key === "n" ? 1 : -1), true),
    close: () => panel.stop(),
  };
}

/** @param {Line} one @param {any} answer @param {number} most @param {number} at */
function row(one, answer, most, at) {
  const has = one.total !== null, bar = h("i"), cost = (/** @type {number | null} */ value) => (value ? percent(value, answer.whole) : "");
  if (one.self) bar.style.width = `${Math.max(2, 100 * one.self / most)}%`;
  const line = h("tr", { class: [has && one.is_own ? "own" : "", at === answer.begins ? "begins" : ""].filter(Boolean).join(" ") || null, "data-line": one.n,
    title: has ? `${amount(one.self || 0, answer.unit)} itself, ${amount(one.total || 0, answer.unit)} with all that it calls` : null },
  h("td", { class: "bar" }, one.self ? bar : "", h("span", null, cost(one.self))), h("td", null, cost(one.total)), h("td", { class: "dim" }, one.n ?? ""), h("td", { class: "text" }, one.text || " "));
  if (has) { line.dataset.self = String(one.self); line.dataset.total = String(one.total); }
  return line;
}
