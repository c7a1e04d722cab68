// The list of methods, and the call tree. While a row is chosen the order stands still; figures go on.

import { button, h, meter } from "./dom.js";
import { Panel, get } from "./api.js";
import { amount, count, percent } from "./figures.js";
import { add, go, set, state, view } from "./state.js";
import { Grid } from "./grid.js";
import { unit } from "./lanes.js";
import { exact, exactly, hasExact } from "./live.js";

/** @typedef {{name: string, kind: string, self: number, total: number, calls: number | null, self_interval: [number, number] | null, mean_ns: number | null}} Method */

const CHUNK = 200;

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function methodsPage(host) {
  const note = h("output", { class: "dim" }), main = h("div", { class: "graph" }), side = h("aside", { class: "side", "aria-label": "Selected method" });
  const by = h("select", { "aria-label": "Group by", change: () => set({ by: by.value === "method" ? null : by.value }) },
    ...["method", "class", "package", "line", "jar", "loader"].map((one) => h("option", { value: one }, `by ${one}`)));
  host.append(h("div", { class: "tools" }, h("h2", null, "Methods"), by, note), h("div", { class: "split" }, main, side));
  let whole = 0, has = false, sure = false;
  /** @type {Set<number>} */
  const wanted = new Set();
  const sort = () => state.query.get("sort") || "self", down = () => state.query.get("desc") !== "0";
  /** @type {(Method | undefined)[]} */
  let rows = [];
  const columns = () => /** @type {import("./grid.js").Column<Method>[]} */ ([
    { id: "self", title: "itself", hint: "what the method took without what it called", width: "112px", narrow: true, sort: true, cell: (row) => meter(row.self / whole, percent(row.self, whole)), value: (row) => row.self },
    { id: "total", title: "total", hint: "with all that it called", width: "112px", sort: true, cell: (row) => meter(row.total / whole, percent(row.total, whole)), value: (row) => row.total },
    { id: "value", title: "value", hint: "what it took itself", width: "76px", narrow: true, cell: (row) => amount(row.self, unit()), value: (row) => row.self },
    ...(sure ? [{ id: "interval", title: "95 %", hint: "where the truth lies, with 95 % confidence", width: "150px", roomy: true,
      cell: (/** @type {Method} */ row) => h("span", { class: "dim" }, row.self_interval?.[1] ? `${amount(row.self_interval[0], unit())} – ${amount(row.self_interval[1], unit())}` : "–") }] : []),
    ...(has ? [{ id: "calls", title: "calls", hint: "exact", width: "92px", sort: true, cell: (/** @type {Method} */ row) => (row.calls === null ? "–" : count(row.calls)), value: (/** @type {Method} */ row) => row.calls },
      { id: "mean", title: "per call", hint: "itself, per call", width: "72px", cell: (/** @type {Method} */ row) => (!row.mean_ns ? "–" : amount(row.mean_ns, "ns")), value: (/** @type {Method} */ row) => row.mean_ns }] : []),
    ...(hasExact() ? [{ id: "exact", title: "exactly", hint: "calls that were counted, and the mean of each", width: "150px",
      cell: (/** @type {Method} */ row) => { const known = exact(row.name); return known ? `${count(known.count)} × ${amount(known.count ? known.total / known.count : 0, "ns")}` : h("span", { class: "dim" }, "–"); },
      value: (/** @type {Method} */ row) => exact(row.name)?.count ?? null }] : []),
    { id: "name", title: "method", left: true, width: "minmax(120px, 1fr)", narrow: true, sort: true, cell: (row) => h("span", { class: `name kind-${row.kind}`, title: row.name }, row.name) },
  ]);
  const query = (/** @type {number} */ offset, /** @type {number} */ limit) =>
    view({ sort: sort(), desc: down() ? null : "0", q: state.query.get("q"), offset, limit });
  /** @type {Grid<Method>} */
  const grid = new Grid(main, {
    label: "Methods", columns: columns(), name: (row) => row.name,
    sort: (column) => set(column === sort() ? { desc: down() ? "0" : null } : { sort: column, desc: column === "name" ? "0" : null }),
    choose: (row) => { state.query.set("method", row.name); around.ask(); note.textContent = words(); },
    enter: (row) => go("sandwich", { method: row.name }),
    missing: (i) => more(Math.floor(i / CHUNK)),
  });
  grid.box.addEventListener("unchosen", () => { state.query.delete("method"); side.replaceChildren(hint()); panel.ask(); });
  const hint = () => h("p", { class: "dim" }, "Choose a row: this shows who calls it and what it calls. Enter opens both as flame graphs.");
  side.append(hint());
  let all = 0, found = 0;
  const frozen = () => state.run.source === "live" && (grid.chosen >= 0 || grid.body.matches(":hover"));
  const words = () => `${count(found)}${found === all ? "" : ` of ${count(all)}`}${frozen() ? (grid.chosen >= 0 ? " · order frozen while a row is selected, Esc thaws" : " · order frozen while the pointer is in the list") : ""}`;
  const more = async (/** @type {number} */ chunk) => {
    if (wanted.has(chunk)) return;
    wanted.add(chunk);
    try {
      const answer = await get("methods", query(chunk * CHUNK, CHUNK));
      if (!wanted.has(chunk)) return;
      answer.rows.forEach((/** @type {Method} */ row, /** @type {number} */ i) => { rows[chunk * CHUNK + i] = row; });
      grid.show(rows, found);
    } catch { wanted.delete(chunk); }
  };
  const panel = new Panel(main, (signal) => get("methods", query(0, frozen() ? 2000 : CHUNK), signal), (answer) => {
    whole = answer.total;
    all = answer.all;
    if (frozen()) {
      // The order stays as it was; what is new stands at the end of what is loaded.
      const fresh = new Map(answer.rows.map((/** @type {Method} */ row) => [row.name, row]));
      rows = rows.map((row) => (row ? fresh.get(row.name) || row : row));
      found = Math.max(found, answer.count);
    } else {
      const chosen = grid.chosen >= 0 ? rows[grid.chosen]?.name : state.query.get("method");
      found = answer.count;
      rows = answer.rows;
      wanted.clear();
      wanted.add(0);
      grid.chosen = chosen ? rows.findIndex((row) => row?.name === chosen) : -1;
    }
    has = answer.has_calls;
    sure = rows.some((row) => row?.self_interval);
    grid.options.columns = columns();
    grid.sorted = { column: sort(), down: down() };
    grid.heads();
    note.textContent = words();
    grid.show(rows, found);
    if (!found) note.textContent = `No method${state.query.get("q") ? ` whose name has “${state.query.get("q")}”` : ""} passes the filters.`;
  });
  const around = new Panel(side, (signal) => get("around", view({ method: state.query.get("method") }), signal), (answer) => {
    const part = (/** @type {string} */ title, /** @type {any[]} */ list, /** @type {string} */ none) => [h("h3", null, title), list.length
      ? h("ul", { class: "bars" }, ...list.slice(0, 12).map((one) => h("li", null, meter(one.total / (answer.total || 1), percent(one.total, answer.total)),
        button(one.name, () => go("sandwich", { method: one.name }), { class: "name link", title: one.name })))) : h("p", { class: "dim" }, none)];
    side.replaceChildren(h("h2", { class: "name wrap" }, answer.name),
      h("dl", null, h("dt", null, "itself"), h("dd", null, h("b", null, amount(answer.self, unit()))), h("dt", null, "total"), h("dd", null, h("b", null, amount(answer.total, unit()))),
        ...(answer.calls === null || answer.calls === undefined ? [] : [h("dt", null, "calls"), h("dd", null, count(answer.calls))])),
      h("div", { class: "buttons" }, button("Sandwich", () => go("sandwich", { method: answer.name })), button("In the flame graph", () => go("flame", { q: answer.name })), button("Source", () => go("source", { method: answer.name })),
        button("Only what it calls", () => set(add("root", answer.name)))),
      exactly(answer.name, answer.kind),
      ...part("Callers", answer.callers, "Nobody: it is where stacks begin."), ...part("Callees", answer.callees, "It calls nothing that was seen."));
  });
  return {
    update(why) {
      by.value = state.query.get("by") || "method";
      if (why !== "epoch") { grid.chosen = -1; grid.box.scrollTop = 0; }
      if (why === "epoch" && grid.box.scrollTop > CHUNK * 20) return;
      panel.ask(why === "epoch" ? "epoch" : "view");
      if (state.query.get("method")) around.ask(why === "epoch" ? "epoch" : "view");
      else side.replaceChildren(hint());
    },
    key: (event) => (document.activeElement === document.body || document.activeElement === host) && event.key === "ArrowDown" && (grid.box.focus(), grid.choose(0), true),
    close: () => { panel.stop(); around.stop(); grid.close(); },
  };
}

/** @typedef {{node: number, path: string, parent: number, depth: number, text: string, kind: string, own: number, total: number, calls: number | null, children: number, open: boolean, folded: number, times: number}} Branch */

/** A call tree, whose nodes open one by one; also what a screen reader has of the flame graph. */
export class Tree {
  /** @param {HTMLElement} host @param {{path?: string | null}} options */
  constructor(host, options) {
    this.options = options;
    this.whole = 1;
    this.tree = "";
    this.touched = false;
    /** @type {Branch[]} */
    this.rows = [];
    this.stale = button("Newer data is there: refresh", () => this.ask("view"), { hidden: true, class: "stale" });
    host.append(this.stale);
    this.has = false;
    /** @type {Grid<Branch>} */
    this.grid = new Grid(host, { label: "Call tree", columns: this.columns(), name: (row) => row.text,
      tree: (row) => ({ depth: row.depth, open: row.open, leaf: !row.children }),
      toggle: (row, i, open) => { this.toggle(row, i, open); },
      enter: (row) => go("sandwich", { method: row.text }), pale: (row) => row.kind === "d" });
    this.panel = new Panel(host, (signal) => get("tree", view({ path: this.options.path, open: 0.05, limit: 500 }), signal), (answer) => {
      this.whole = answer.total || 1;
      this.tree = answer.tree;
      this.rows = answer.rows;
      this.touched = false;
      this.stale.hidden = true;
      const has = this.rows.some((row) => row.calls !== null);
      if (has !== this.has) { this.has = has; this.grid.options.columns = this.columns(); this.grid.heads(); }
      this.grid.show(this.rows);
    });
  }

  columns() {
    return /** @type {import("./grid.js").Column<Branch>[]} */ ([
      { id: "total", title: "total", hint: "with all that it called", width: "136px", narrow: true, cell: (row) => meter(row.total / this.whole, percent(row.total, this.whole)), value: (row) => row.total },
      { id: "own", title: "itself", width: "82px", cell: (row) => (row.own ? percent(row.own, this.whole) : h("span", { class: "dim" }, "–")), value: (row) => row.own },
      { id: "value", title: "value", width: "88px", cell: (row) => amount(row.total, unit()), value: (row) => row.total },
      ...(this.has ? [{ id: "calls", title: "calls", width: "104px", cell: (/** @type {Branch} */ row) => (row.calls === null ? "–" : count(row.calls)), value: (/** @type {Branch} */ row) => row.calls }] : []),
      { id: "name", title: "method", left: true, width: "minmax(140px, 1fr)", narrow: true, cell: (row) => {
        const twist = row.children ? button(row.open ? "▾" : "▸", () => {}, { class: "twist", tabindex: -1, "aria-label": row.open ? "Close" : "Open" }) : h("span", { class: "twist" });
        const cell = h("span", { class: `name kind-${row.kind}`, title: row.text }, twist, row.text, row.times > 1 ? h("small", { class: "dim" }, ` ×${count(row.times)}`) : "",
          row.folded ? h("small", { class: "dim" }, ` (${count(row.folded)} folded)`) : "");
        cell.style.paddingLeft = `${Math.min(row.depth, 60) * 14}px`;
        return cell;
      } },
    ]);
  }

  /** @param {Branch} row @param {number} i @param {boolean} open */
  async toggle(row, i, open) {
    this.touched = true;
    if (!open) {
      let end = i + 1;
      while (end < this.rows.length && this.rows[end].depth > row.depth) end++;
      this.rows.splice(i + 1, end - i - 1);
      row.open = false;
      return this.grid.show(this.rows);
    }
    try {
      let answer;
      try { answer = await get("tree", view({ tree: this.tree, node: row.node })); } catch (/** @type {any} */ error) {
        if (error?.status !== 409) throw error;
        answer = await get("tree", view({ path: row.path }));
      }
      const at = this.rows.indexOf(row), below = answer.rows.filter((/** @type {Branch} */ one) => one.node !== row.node && one.path !== row.path);
      // Depths of the answer may begin at the asked node.
      const least = Math.min(...below.map((/** @type {Branch} */ one) => one.depth));
      for (const one of below) one.depth += row.depth + 1 - least;
      row.open = true;
      this.rows.splice(at + 1, 0, ...below);
      this.grid.show(this.rows);
    } catch (error) { this.panel.fail(error); }
  }

  /** @param {"view" | "epoch"} why */
  ask(why) {
    if (why === "epoch" && (this.touched || this.grid.chosen >= 0)) { this.stale.hidden = false; return; }
    this.panel.ask(why);
  }

  close() { this.panel.stop(); this.grid.close(); }
}

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function treePage(host) {
  const main = h("div", { class: "graph" });
  host.append(h("div", { class: "tools" }, h("h2", null, "Call tree"), h("span", { class: "dim" }, "opened down to 5 % of the whole; Enter on a row shows its callers and callees")), h("div", { class: "split" }, main));
  const tree = new Tree(main, { path: state.query.get("path") });
  return {
    update(why) { tree.options.path = state.query.get("path"); tree.ask(why === "epoch" ? "epoch" : "view"); },
    key: (event) => (document.activeElement === document.body) && event.key === "ArrowDown" && (tree.grid.box.focus(), tree.grid.choose(0), true),
    close: () => tree.close(),
  };
}
