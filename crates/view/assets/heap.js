// The heap: who holds what as a map, the holders, classes, dominators as a tree, and the ways from
// roots. Of a JVM a snapshot is taken first.

import { button, h, meter, toast } from "./dom.js";
import { Panel, get, post } from "./api.js";
import { bytes, count, percent, short } from "./figures.js";
import { set, state } from "./state.js";
import { Grid } from "./grid.js";

/** @typedef {{n: string, b: string, r: number, c: Area[], rest?: boolean}} Area */

const TABS = { map: "Map and holders", histo: "Classes", dominators: "Dominators", path: "Ways from roots" };

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function heapPage(host) {
  const tab = () => state.query.get("tab") || "map", what = () => state.query.get("what") || "";
  const tabs = h("div", { class: "buttons", role: "tablist" }), main = h("div", { class: "heap" });
  const live = state.run.source === "live";
  const again = button(live ? "Take a snapshot" : "", async () => {
    again.disabled = true;
    toast("A snapshot is being taken …");
    try { await post("live", { do: "snapshot" }); panel.ask(); } catch (/** @type {any} */ error) { toast(error.message); }
    again.disabled = false;
  }, { hidden: !live, title: "The program stands for about 30 ms per gigabyte" });
  host.append(h("div", { class: "tools" }, h("h2", null, "Heap"), tabs, again), main);
  /** @type {Grid<any> | null} */
  let grid = null;
  const wanted = () => (tab() === "map" ? get("heap/overview") : tab() === "path" ? (what() ? get("heap/path", new URLSearchParams({ what: what() })) : Promise.resolve(undefined))
    : tab() === "histo" ? get(state.query.has("order") ? "heap/histo" : "heap/changes", new URLSearchParams({ what: state.query.get("by") || "class" })) : get("heap/dominators"));
  const panel = new Panel(main, wanted, (answer) => {
    grid?.close();
    grid = null;
    main.replaceChildren();
    if (answer === null) {
      main.append(h("div", { class: "lacking" }, h("h2", null, "No snapshot yet"), h("p", null, "A snapshot tells who holds the memory. The program stands for about 30 ms per gigabyte of heap, and goes on; its heap is read from a copy.")));
    } else if (tab() === "map") map(main, answer);
    else if (tab() === "histo") grid = histo(main, answer);
    else if (tab() === "dominators") grid = dominators(main, answer);
    else ways(main, answer, what());
  });
  return {
    update(why) {
      tabs.replaceChildren(...Object.entries(TABS).map(([id, text]) => button(text, () => set({ tab: id === "map" ? null : id, what: null }), { role: "tab", "aria-selected": String(id === tab()), "aria-pressed": String(id === tab()) })));
      if (why !== "epoch") panel.ask();
    },
    close: () => { panel.stop(); grid?.close(); },
  };
}

// ---- map and holders -----------------------------------------------------------------------------

const title = (/** @type {Area} */ area) => (area.b ? `${area.b}: ` : "") + area.n;
const rest = (/** @type {Area} */ area) => {
  const left = area.r - area.c.reduce((sum, one) => sum + one.r, 0);
  return [...area.c, ...(left > 0 ? [{ n: "itself and small parts", b: "", r: left, c: [], rest: true }] : [])].sort((a, b) => b.r - a.r);
};

/** @param {HTMLElement} main @param {any} data */
function map(main, data) {
  const box = h("div", { class: "map", "aria-hidden": "true" }), crumbs = h("nav", { class: "crumbs", "aria-label": "Inside" });
  /** @type {Area[]} */
  const way = [data.tree];
  const whole = h("b", null, bytes(data.bytes));
  whole.dataset.figure = "total";
  whole.dataset.value = String(data.bytes);
  main.append(h("p", null, whole, ` in ${count(data.objects)} objects `, h("span", { class: "dim" }, data.origin)), ...data.notes.map((/** @type {string} */ note) => h("p", { class: "dim" }, note)), crumbs, box,
    h("p", { class: "dim" }, "An area is an object with all that only it holds. Click to go into it."), h("h3", null, "Who holds it"),
    h("ul", { class: "holders" }, ...data.suspects.map(holder)));
  if (!data.suspects.length) main.append(h("p", { class: "card calm" }, "Nothing holds one percent of it or more."));
  const draw = () => {
    box.replaceChildren();
    const fill = (/** @type {Area[]} */ areas, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ w, /** @type {number} */ t, /** @type {number} */ depth) => squares(areas, x, y, w, t, (area, x, y, w, t) => {
      if (w < 2 || t < 2) return;
      const part = h("div", { class: area.rest ? "rest" : null, title: `${title(area)}\n${bytes(area.r)}, ${percent(area.r, data.bytes)}`, click: (/** @type {Event} */ event) => { event.stopPropagation(); if (area.c.length) { way.push(area); draw(); } } },
        w > 40 && t > 14 ? `${short(title(area))} ${bytes(area.r)}` : "");
      Object.assign(part.style, { left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${t}px` });
      if (!area.rest) part.style.setProperty("--hue", String(hue(area.n)));
      if (depth) part.classList.add("deep");
      box.append(part);
      if (depth < 1 && area.c.length && w > 80 && t > 60) fill(rest(area), x + 2, y + 17, w - 4, t - 19, depth + 1);
    });
    fill(rest(way[way.length - 1]), 0, 0, box.clientWidth, box.clientHeight, 0);
    crumbs.replaceChildren(...way.map((area, i) => button(`${short(title(area))} ${bytes(area.r)}`, () => { way.length = i + 1; draw(); }, { title: title(area) })));
  };
  draw();
  new ResizeObserver(() => { if (box.isConnected) draw(); }).observe(box);
}

const hue = (/** @type {string} */ text) => [...text.replace(/[@(].*/, "")].reduce((hash, c) => (hash * 31 + (c.codePointAt(0) || 0)) >>> 0, 0) % 360;

/** Areas in rows whose pieces are as square as they can be. @param {Area[]} areas @param {number} x @param {number} y @param {number} w @param {number} t @param {(area: Area, x: number, y: number, w: number, t: number) => void} show */
function squares(areas, x, y, w, t, show) {
  const scale = w * t / areas.reduce((sum, one) => sum + one.r, 0);
  for (let at = 0; at < areas.length && w > 0.5 && t > 0.5;) {
    const side = Math.min(w, t), large = areas[at].r * scale;
    let row = 0, worst = Infinity, end = at;
    for (; end < areas.length; end++) {
      const next = row + areas[end].r * scale, small = areas[end].r * scale;
      const shape = Math.max(side * side * large / (next * next), next * next / (side * side * small));
      if (shape > worst) break;
      worst = shape;
      row = next;
    }
    const thick = row / side;
    for (let along = 0, i = at; i < end; i++) {
      const long = areas[i].r * scale / thick;
      if (w >= t) show(areas[i], x, y + along, thick, long);
      else show(areas[i], x + along, y, long, thick);
      along += long;
    }
    if (w >= t) { x += thick; w -= thick; } else { y += thick; t -= thick; }
    at = end;
  }
}

/** @param {any} one */
function holder(one) {
  const item = h("li", { class: "holder" }, h("div", { class: "buttons" }, meter(one.share, percent(one.share, 1)), h("b", null, bytes(one.retained)), h("span", { class: "name wrap" }, one.holder)),
    one.path ? chain(one.path) : "", h("p", { class: "dim" }, `filled by ${one.filled_by.map((/** @type {any} */ part) => `${bytes(part.bytes)} in ${count(part.objects)} ${part.class}`).join(", ")}`));
  item.dataset.name = one.holder;
  item.dataset.value = String(one.retained);
  return item;
}

// ---- classes, dominators, ways -------------------------------------------------------------------

const held = (/** @type {number} */ whole) => [
  { id: "retained", title: "retained", hint: "what would be free without it", width: "150px", narrow: true, cell: (/** @type {any} */ row) => meter(row.retained / (whole || 1), bytes(row.retained)), value: (/** @type {any} */ row) => row.retained },
  { id: "bytes", title: "itself", width: "90px", cell: (/** @type {any} */ row) => bytes(row.bytes), value: (/** @type {any} */ row) => row.bytes }];

/** @param {HTMLElement} main @param {any} data */
function histo(main, data) {
  const by = h("select", { "aria-label": "Rows are", change: () => set({ by: by.value === "class" ? null : by.value }) }, ...["class", "package", "loader"].map((one) => h("option", { selected: (state.query.get("by") || "class") === one }, one)));
  main.append(h("p", null, "by ", by, h("span", { class: "dim" }, ` ${count(data.all)} rows${data.all > data.rows.length ? `, the largest ${count(data.rows.length)}` : ""}; Enter shows why instances are still there`)),
    data.before !== undefined || state.query.has("order") ? button("What changed first", () => set({ order: state.query.has("order") ? null : "retained" }), { "aria-pressed": String(!state.query.has("order")), title: "Beside the heap before" }) : "");
  const signed = (/** @type {string} */ id, /** @type {string} */ title, /** @type {(value: number) => string} */ words) => ({ id, title, width: "104px", narrow: id === "more_bytes",
    cell: (/** @type {any} */ row) => `${row[id] > 0 ? "+" : row[id] < 0 ? "−" : ""}${words(Math.abs(row[id]))}`, value: (/** @type {any} */ row) => row[id] });
  const place = h("div", { class: "graph tall" });
  main.append(place);
  /** @type {Grid<any>} */
  const grid = new Grid(place, { label: "Classes", name: (row) => row.name, enter: (row) => { if (by.value === "class") set({ tab: "path", what: row.name }); },
    columns: [...(data.before === undefined ? [] : [signed("more_bytes", "change", bytes), signed("more_objects", "objects", count)]), ...held(data.bytes), { id: "objects", title: "objects", width: "110px", cell: (row) => count(row.objects), value: (row) => row.objects },
      { id: "name", title: by.value, left: true, narrow: true, width: "minmax(140px, 1fr)", cell: (row) => h("span", { class: "name", title: row.name }, row.name) }] });
  grid.show(data.rows);
  return grid;
}

/** @param {HTMLElement} main @param {any} data */
function dominators(main, data) {
  const place = h("div", { class: "graph tall" }), level = (/** @type {any[]} */ rows, /** @type {number} */ depth) => rows.map((row) => ({ ...row, depth, open: false }));
  main.append(h("p", { class: "dim" }, "Each object with all that only it holds; Enter shows why it is still there."), place);
  let rows = level(data.rows, 0);
  /** @type {Grid<any>} */
  const grid = new Grid(place, { label: "Dominators", name: (row) => `${row.class} @${row.address}`, tree: (row) => ({ depth: row.depth, open: row.open, leaf: !row.holds }),
    enter: (row) => set({ tab: "path", what: `@${row.address}` }),
    toggle: async (row, i, open) => {
      row.open = open;
      if (open) rows.splice(i + 1, 0, ...level((await get("heap/dominators", new URLSearchParams({ what: `@${row.address}` }))).rows, row.depth + 1));
      else {
        let end = i + 1;
        while (end < rows.length && rows[end].depth > row.depth) end++;
        rows.splice(i + 1, end - i - 1);
      }
      grid.show(rows);
    },
    columns: [...held(data.bytes), { id: "name", title: "object", left: true, narrow: true, width: "minmax(140px, 1fr)", cell: (row) => {
      const cell = h("span", { class: "name" }, row.holds ? button(row.open ? "▾" : "▸", () => {}, { class: "twist", tabindex: -1, "aria-label": row.open ? "Close" : "Open" }) : h("span", { class: "twist" }), `${row.class} @${row.address} `, row.label ? h("small", { class: "dim" }, row.label) : "");
      cell.style.paddingLeft = `${Math.min(row.depth, 60) * 14}px`;
      return cell;
    } }] });
  grid.show(rows);
  return grid;
}

/** @param {HTMLElement} main @param {any} data @param {string} what */
function ways(main, data, what) {
  const field = h("input", { "aria-label": "A class, or @ and an address", placeholder: "com.acme.Session or @7f0012a8", size: 40, spellcheck: "false", value: what });
  main.append(h("form", { class: "buttons", submit: (/** @type {Event} */ event) => { event.preventDefault(); set({ what: field.value.trim() || null }); } }, field, h("button", null, "Why is it still there?")));
  if (!data) return main.append(h("p", { class: "dim" }, "Name a class or an object: the shortest chain of strong references from a root is shown."));
  main.append(h("p", { class: "dim" }, data.instances === 1 ? "one object" : `${count(data.instances)} instances, those that retain most first`),
    ...data.paths.map((/** @type {any} */ one) => {
      const card = h("div", { class: "holder" }, h("p", null, h("b", null, `${bytes(one.object.retained)} retained `), h("span", { class: "name wrap" }, `${one.object.class} @${one.object.address}`)),
        one.path ? chain(one.path) : h("p", { class: "dim" }, `${one.level} reachable: no chain of strong references`));
      card.dataset.name = `@${one.object.address}`;
      return card;
    }));
}

/** A chain of references, from the root on. @param {any} path */
const chain = (path) => h("ol", { class: "chain" }, ...path.steps.map((/** @type {any} */ step, /** @type {number} */ i) => h("li", { class: "name wrap" },
  i ? h("span", { class: "dim" }, `${step.by}: `) : h("span", { class: "dim" }, `${path.root}: `), step.class === "java.lang.Class" ? `class ${step.label}` : step.class,
  i === path.steps.length - 1 ? h("small", { class: "dim" }, ` ${bytes(step.retained)}`) : "")));
