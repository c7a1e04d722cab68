// Pages of what engines tell beside the tree: locks, memory, classes; and the comparison.

import { button, h, meter, spark } from "./dom.js";
import { Panel, get } from "./api.js";
import { amount, bytes, count, percent, short, time } from "./figures.js";
import { go, set, state, view } from "./state.js";
import { Grid, table } from "./grid.js";
import { link } from "./overview.js";
import { lacking } from "./app.js";
import { diffFlame, pictures } from "./graphs.js";
import { unit } from "./lanes.js";

/** @typedef {import("./grid.js").Column<any>} Any */

/** A column of figures. @param {string} id @param {string} title @param {(row: any) => number | null} value @param {(value: number) => string} words @param {boolean} [narrow] @returns {Any} */
const figure = (id, title, value, words, narrow) => ({ id, title, width: "", narrow, value,
  cell: (row) => { const v = value(row); return v === null || v === undefined ? "–" : words(v); } });

/** A column of names; a method's leads to its sandwich. @param {string} id @param {string} title @param {(row: any) => string | null} value @param {boolean} [method] @returns {Any} */
const named = (id, title, value, method) => ({ id, title, width: "", left: true, narrow: true, cell: (row) => {
  const text = value(row);
  return !text ? h("span", { class: "dim" }, "–") : method ? link(text, "sandwich", { method: text }) : h("span", { class: "name", title: text }, text);
} });

/** @param {string} id @param {string} title @param {(row: any) => number} value @param {() => number} whole @returns {Any} */
const share = (id, title, value, whole) => ({ id, title, width: "", narrow: true, cell: (row) => meter(value(row) / (whole() || 1), percent(value(row), whole())), value });

/** @param {string} title @param {string} hint @param {...(Node | string)} content */
const block = (title, hint, ...content) => h("section", { class: "block" }, h("h3", null, title, hint ? h("small", { class: "dim" }, ` ${hint}`) : ""), ...content);

/** A table, and how much of it is left out. @param {string} label @param {Any[]} columns @param {any[]} rows @param {(row: any) => string} name @param {number} [most] */
function some(label, columns, rows, name, most = 20) {
  const box = h("div", { class: "scroll" }, table(label, columns, rows.slice(0, most), name));
  if (rows.length > most) {
    box.append(button(`Show all ${count(rows.length)}`, () => box.replaceChildren(table(label, columns, rows.slice(0, 2000), name)), { class: "link" }));
  }
  return box;
}

/** Figures in large. @param {...[string, string, number?]} all */
const figures = (...all) => h("div", { class: "strip-figures" }, ...all.map(([name, text, value]) => {
  const bold = h("b", null, text);
  if (value !== undefined) bold.dataset.value = String(value);
  return h("span", null, `${name} `, bold);
}));

/** A page of one section. @param {string} name @param {string} title @param {(section: any, host: HTMLElement) => void} draw */
const page = (name, title, draw) => (/** @type {HTMLElement} */ host) => {
  const body = h("div", { class: "flow" });
  host.append(h("div", { class: "tools" }, h("h2", null, title)), body);
  let held = "";
  /** @type {import("./api.js").Panel<any>} */
  const panel = new Panel(body, (signal) => get(`section/${name}`, view(), signal), (answer) => {
    if (!answer.section) return body.replaceChildren(lacking(title, answer.how));
    // What is the same stays, with its folds and its selection.
    const text = JSON.stringify(answer.section);
    if (text === held) return;
    held = text;
    draw(answer.section, body);
  });
  return { update: (/** @type {string} */ why) => { if (why !== "own") panel.ask(why === "epoch" ? "epoch" : "view"); },
    look: () => { body.querySelectorAll("canvas").forEach((one) => one.dispatchEvent(new Event("tare-look"))); }, close: () => panel.stop() };
};

/** @type {Record<string, string>} */
const DOING = { socket: "waits for a socket", file: "reads or writes a file", sleep: "sleeps", queue: "waits for a queue", monitor: "waits to be notified", parked: "is parked" };

// ---- locks ---------------------------------------------------------------------------------------

const WAITS = () => [figure("total", "blocked", (row) => row.total_ns, time, true), figure("waits", "waits", (row) => row.waits, count),
  figure("mean", "mean", (row) => row.mean_ns, time), figure("longest", "longest", (row) => row.longest_ns, time)];

export const locksPage = page("locks", "Locks", (locks, host) => {
  const chosen = h("div", { class: "lock" }), list = h("ul", { class: "locks", "aria-label": "Locks" });
  const most = Math.max(1, ...locks.locks.map((/** @type {any} */ one) => one.total_ns));
  const choose = (/** @type {number} */ i) => {
    [...list.children].forEach((item, at) => item.querySelector("button")?.setAttribute("aria-pressed", String(at === i)));
    const lock = locks.locks[i];
    if (!lock) return;
    const half = (/** @type {string} */ title, /** @type {any[]} */ rows, /** @type {boolean} */ owners) => block(title, "", some(title, [
      share("share", "share", (row) => row.total_ns, () => lock.total_ns), ...WAITS(), named("method", "method", (row) => row.method, true),
      ...(owners ? [named("threads", "thread", (row) => row.threads), named("doing", "and that one", (row) => (row.waits_for ? `waits for ${row.waits_for}` : !row.doing || row.doing === "code" ? "runs" : DOING[row.doing] || row.doing))] : [])], rows, (row) => row.method || "unknown"));
    chosen.replaceChildren(h("h2", { class: "name wrap" }, lock.name),
      figures(["blocked", time(lock.total_ns), lock.total_ns], ["waits", count(lock.waits), lock.waits], ["mean", time(lock.mean_ns)], ["longest", time(lock.longest_ns)], ["threads", count(lock.threads)]),
      lock.queue?.over_time ? block("Queue over time", `at most ${lock.queue.longest}, ${lock.queue.mean.toFixed(1)} on average`, spark(lock.queue.over_time, 320, 36, "Threads in the queue over time")) : "",
      half("Where threads wait for it", lock.waiters || [], false), half("Who has it meanwhile", lock.owners || [], true),
      lock.pools?.length ? block("Threads that wait", "", some("Threads that wait", [figure("total", "blocked", (row) => row.total_ns, time, true), figure("threads", "threads", (row) => row.threads, count, true), named("name", "pool", (row) => row.name)], lock.pools, (row) => row.name)) : "");
  };
  list.append(...locks.locks.map((/** @type {any} */ lock, /** @type {number} */ i) => {
    const item = h("li", null, button("", () => choose(i), { "aria-label": `${lock.name}, ${time(lock.total_ns)}` }));
    item.dataset.name = lock.name;
    item.querySelector("button")?.append(h("span", { class: "name", title: lock.name }, short(lock.name)), meter(lock.total_ns / most, time(lock.total_ns)));
    return item;
  }));
  host.replaceChildren(
    figures(["blocked", time(locks.contended.total_ns), locks.contended.total_ns], ["waits", count(locks.contended.waits), locks.contended.waits], ["longest", time(locks.contended.longest_ns)], ["threads", count(locks.threads)],
      ...(locks.shorter?.waits ? [/** @type {[string, string]} */ (["shorter, without stacks", `${count(locks.shorter.waits)}, ${time(locks.shorter.total_ns)}`])] : [])),
    locks.locks.length ? h("div", { class: "split lock-split" }, list, chosen) : h("p", { class: "card calm" }, "No thread waited for a lock that another one had."),
    locks.by_threads?.length ? block("Who holds up whom", "threads", some("Threads", [...WAITS(), named("waiter", "waiting", (row) => row.waiter), named("owner", "for", (row) => row.owner)], locks.by_threads, (row) => `${row.waiter} ${row.owner}`, 8)) : "",
    locks.by_methods?.length ? block("Who holds up whom", "methods", some("Methods", [...WAITS(), named("waiter", "waiting", (row) => row.waiter, true), named("owner", "for", (row) => row.owner, true)], locks.by_methods, (row) => `${row.waiter} ${row.owner}`, 8)) : "",
    locks.waiting?.length ? block("Other waits", "not for locks", some("Other waits", [...WAITS(), named("kind", "kind", (row) => row.kind), named("place", "in", (row) => row.place, true)], locks.waiting, (row) => row.place, 8)) : "",
    locks.executors?.length ? block("Tasks in queues", "before they ran", some("Executors", [...WAITS(), figure("p95", "95 % within", (row) => row.p95_ns, time), named("class", "task", (row) => row.class), named("name", "executor", (row) => row.name)], locks.executors, (row) => row.class, 8)) : "");
  choose(0);
});

// ---- memory --------------------------------------------------------------------------------------

export const memoryPage = page("memory", "Memory", (memory, host) => {
  const whole = memory.allocated.bytes, sites = memory.sites || [];
  const classes = new Map();
  for (const site of sites) {
    const have = classes.get(site.class) || { name: site.class, bytes: 0, objects: 0, live: 0 };
    have.bytes += site.allocated.bytes;
    have.objects += site.allocated.objects;
    have.live += site.live?.bytes || 0;
    classes.set(site.class, have);
  }
  const by = [...classes.values()].sort((a, b) => b.bytes - a.bytes), alive = memory.live && memory.live.bytes > 0;
  const allocation = state.run.series.find((one) => /alloc/.test(one.name) && one.unit === "bytes" && !/live/.test(one.kind));
  host.replaceChildren(
    figures(["allocated", bytes(whole), whole], ["a second", `${bytes(memory.bytes_per_second)}`], ["objects", count(memory.allocated.objects)],
      ...(memory.live ? [/** @type {[string, string, number]} */ (["alive at the end", `${bytes(memory.live.bytes)} in ${count(memory.live.objects)} objects`, memory.live.bytes])] : []),
      ...(memory.not_proven_yet ? [/** @type {[string, string]} */ (["not proven yet", bytes(memory.not_proven_yet.bytes)])] : []),
      ["collections", count(memory.collections)]),
    h("p", { class: "dim" }, memory.exact ? "Every object was counted." : `${count(memory.samples)} samples, one per ${memory.interval_bytes ? `${count(memory.interval_bytes / 1024)} KiB` : "interval"}; sizes are estimates.`),
    allocation ? h("div", { class: "buttons" }, button("Flame graph of allocation", () => go("flame", { metric: allocation.id, path: null }))) : "",
    block("Sites", "class and place, the most first", some("Sites of allocation", [
      share("share", "of all", (row) => row.allocated.bytes, () => whole), figure("bytes", "bytes", (row) => row.allocated.bytes, bytes, true), figure("objects", "objects", (row) => row.allocated.objects, count),
      ...(alive ? [figure("live", "alive", (row) => row.live?.bytes ?? null, bytes)] : []),
      figure("samples", "samples", (row) => row.samples, count),
      { id: "error", title: "±", width: "", cell: (row) => (row.allocated_share_error ? `${(100 * row.allocated_share_error).toFixed(1)} points` : "–"), value: (row) => row.allocated_share_error },
      named("class", "class", (row) => row.class), named("name", "place", (row) => row.place)], sites, (row) => `${row.class} ${row.place}`, 25)),
    block("Classes", "of all sites", some("Classes", [share("share", "of all", (row) => row.bytes, () => whole), figure("bytes", "bytes", (row) => row.bytes, bytes, true), figure("objects", "objects", (row) => row.objects, count),
      ...(alive ? [figure("live", "alive", (row) => row.live, bytes)] : []), named("name", "class", (row) => row.name)], by, (row) => row.name, 15)));
});

// ---- classes -------------------------------------------------------------------------------------

export const classesPage = page("classes", "Classes", (classes, host) => {
  const whole = () => classes.cost?.total_ns || classes.loads || 1;
  const cost = classes.has_costs ? [share("share", "of all", (row) => row.cost.total_ns, whole), figure("total", "time", (row) => row.cost.total_ns, time, true)] : [];
  const start = classes.start_up || [];
  host.replaceChildren(
    figures(["loaded", count(classes.loads), classes.loads], ["unloaded", count(classes.unloads), classes.unloads], ["there before", count(classes.present)],
      ...(classes.has_costs ? [/** @type {[string, string, number]} */ (["time", time(classes.cost.total_ns), classes.cost.total_ns])] : [])),
    classes.has_costs ? h("p", { class: "dim" }, `Found in ${time(classes.cost.search_ns)}, defined in ${time(classes.cost.define_ns)}, linked in ${time(classes.cost.link_ns)}, verified in ${time(classes.cost.verify_ns)}.`) : "",
    start.length ? block("Over time", "", some("Loads over time", [figure("until", "until", (row) => row.until_ns, time, true), figure("loads", "loads", (row) => row.loads, count, true), figure("total", "time", (row) => row.total_ns, time), figure("busiest", "busiest thread", (row) => row.busiest_thread_ns, time),
      { id: "bar", title: "", width: "", left: true, cell: (row) => meter(row.loads / Math.max(...start.map((/** @type {any} */ one) => one.loads)), "") }], start, (row) => String(row.until_ns))) : "",
    block("Why", "the methods that made them load", some("Causes", [...cost, figure("loads", "loads", (row) => row.loads, count, true), named("name", "cause", (row) => row.name, true), named("example", "such as", (row) => row.example)], classes.causes || [], (row) => row.name, 15)),
    block("By loader", "", some("Loaders", [...cost, figure("loads", "loads", (row) => row.loads, count, true), figure("unloads", "unloads", (row) => row.unloads, count), figure("alive", "alive", (row) => row.alive, count), named("name", "loader", (row) => row.name)], classes.loaders || [], (row) => row.name, 10)),
    block("From where", "", some("Sources", [...cost, figure("loads", "loads", (row) => row.loads, count, true), named("name", "source", (row) => row.name), named("example", "such as", (row) => row.example)], classes.sources || [], (row) => row.name, 10)),
    classes.has_costs && classes.dearest?.length ? block("The dearest", "", some("The dearest classes", [...cost, named("class", "class", (row) => row.class), named("cause", "because of", (row) => row.cause, true), named("loader", "loader", (row) => row.loader)], classes.dearest, (row) => row.class, 20)) : "",
    classes.duplicates?.length ? block("Loaded more than once", "by different loaders", some("Duplicates", [figure("loaders", "loaders", (row) => row.loaders.length, count, true), named("class", "class", (row) => row.class), named("names", "the first of them", (row) => row.loaders.slice(0, 3).join(", "))], classes.duplicates, (row) => row.class, 10)) : "");
});

// ---- diff ----------------------------------------------------------------------------------------

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function diffPage(host) {
  const other = h("input", { placeholder: "0s..5s", "aria-label": "The other part of this run", spellcheck: "false", size: 16 });
  const file = state.run.pages.find((one) => one.page === "diff")?.has;
  const against = () => state.query.get("against") || (file ? "file" : "");
  const form = h("form", { class: "buttons", submit: (/** @type {Event} */ event) => { event.preventDefault(); set({ against: other.value.trim() || null }); } },
    file ? button("The other file", () => set({ against: null })) : "", h("label", null, "Before: ", other), h("button", null, "Compare"),
    button("Take what is brushed as before", () => { const time = state.query.get("time"); if (time) set({ against: time, time: null }); }, { title: "Brush one part in the strip, take it, then brush the other" }));
  const growth = h("p", { class: "growth" }), stage = h("div"), main = h("div", { class: "graph diff-list" }), legend = h("p", { class: "dim" }, "Orange grew, blue shrank, as shares of their whole; hatched vanished, dotted is new, grey is as before or may be chance. Widths are the larger of both. Changes are told as if both wholes were equal, so that a longer run alone is none.");
  const empty = h("div", { class: "lacking", hidden: true }, h("h2", null, "Before and after"), h("p", null, "Two files: ", h("code", null, "tare view old.tare new.tare"), ". Two parts of this run: brush the first in the strip, take it as before, then brush the second."));
  host.append(h("div", { class: "tools" }, h("h2", null, "Diff"), form), h("div", { class: "flow" }, empty, growth, main, legend, stage));
  const flame = diffFlame(stage, () => ({ against: against() }));
  let old = 1, fresh = 1;
  const signed = (/** @type {number} */ v) => `${v > 0 ? "+" : v < 0 ? "−" : ""}${amount(Math.abs(v), unit())}`;
  /** @type {Grid<any>} */
  const grid = new Grid(main, { label: "Changes, what grew first", name: (row) => row.name, pale: (row) => Boolean(row.doubt), enter: (row) => go("sandwich", { method: row.name }),
    columns: [
      { id: "change", title: "change", hint: "as if both wholes were as large as the one before", width: "110px", narrow: true, cell: (row) => h("b", { class: row.doubt ? "dim" : row.change > 0 ? "grew" : "shrank" }, signed(row.change)), value: (row) => row.change },
      { id: "old", title: "before", width: "96px", cell: (row) => amount(row.old, unit()), value: (row) => row.old },
      { id: "new", title: "after", width: "96px", cell: (row) => amount(row.new, unit()), value: (row) => row.new },
      { id: "shares", title: "shares", width: "130px", cell: (row) => h("span", { class: "dim" }, `${percent(row.old, old)} → ${percent(row.new, fresh)}`) },
      { id: "name", title: "method", left: true, narrow: true, width: "minmax(140px, 1fr)", cell: (row) => h("span", { class: "name", title: row.name }, row.name) },
      { id: "doubt", title: "how sure", left: true, width: "minmax(90px, 0.5fr)", cell: (row) => h("span", { class: "dim", title: row.doubt }, row.doubt || "sure") }] });
  const panel = new Panel(main, (signal) => get("diff", view({ against: against() }), signal), (answer) => {
    old = answer.old || 1;
    fresh = answer.new || 1;
    growth.replaceChildren(h("b", null, answer.growth || ""), h("span", { class: "dim" }, `  ${amount(answer.old, answer.unit)} → ${amount(answer.new, answer.unit)}`));
    grid.show(answer.changes);
  });
  return {
    update(why) {
      const has = Boolean(against());
      empty.hidden = has;
      growth.hidden = legend.hidden = stage.hidden = main.hidden = !has;
      if (document.activeElement !== other) other.value = against() === "file" ? "" : against();
      if (!has) return;
      panel.ask(why === "epoch" ? "epoch" : "view");
      if (why !== "epoch" || !flame.flight) flame.show({}).catch(() => {});
    },
    key: (event) => document.activeElement === stage && flame.key(event),
    share: () => pictures(flame, "diff"), look: () => flame.recolour(),
    close: () => { panel.stop(); flame.close(); grid.close(); },
  };
}
