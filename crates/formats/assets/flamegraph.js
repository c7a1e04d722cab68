// The page of an exported flame graph. What draws it is the program of `tare view` (palette.js and
// flame.js, which stand before this one); here is what it asks of the numbers in the page (html.rs),
// and what is around it.
"use strict";
(() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

const JAVA = 0, CLASS = 3;

// ---- data ----------------------------------------------------------------------------------------

/** Numbers of seven bits per byte, from base64. */
function* numbers(text) {
  const bytes = atob(text);
  let value = 0, factor = 1;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes.charCodeAt(i);
    value += (byte & 127) * factor;
    if (byte < 128) { yield value; value = 0; factor = 1; } else factor *= 128;
  }
}

const parents = new Int32Array(data.count), labels = new Int32Array(data.count);
{ // Node 0 is the root. A parent stands before its children, so the distance to it is positive.
  let node = 1, distance = null;
  for (const number of numbers(data.nodes)) {
    if (distance === null) { distance = number; continue; }
    parents[node] = node - distance;
    labels[node++] = number;
    distance = null;
  }
  labels[0] = -1;
}

/** Adds the values of a thread to the nodes' own values. */
function addValues(text, own) {
  let node = 0, gap = null;
  for (const number of numbers(text)) {
    if (gap === null) { gap = number; continue; }
    node += gap;
    own[node] += number;
    gap = null;
  }
}

/** The tree of a series and thread (-1: all): own and total values, and children as linked lists. */
function makeTree(series, thread) {
  const groups = data.series[series].groups, count = data.count;
  const own = new Float64Array(count), base = data.series[series].base ? new Float64Array(count) : null;
  const chosen = thread < 0 ? groups : [groups[thread]];
  for (const group of chosen) {
    addValues(group.values, own);
    if (base) addValues(group.base, base);
  }
  const total = own.slice(), baseTotal = base && base.slice();
  const first = new Int32Array(count), next = new Int32Array(count);
  for (let node = count - 1; node > 0; node--) {
    const parent = parents[node];
    total[parent] += total[node];
    if (base) baseTotal[parent] += baseTotal[node];
    if (total[node] > 0 || (base && baseTotal[node] > 0)) { next[node] = first[parent]; first[parent] = node; }
  }
  return { own, total, baseOwn: base, base: baseTotal, first, next };
}

/**
 * Of two runs a frame is as wide as the larger of both, as if both wholes were the older one, and
 * never less than what is below it.
 */
function widths() {
  const { total, base } = tree, scale = base[0] && total[0] ? base[0] / total[0] : 1, out = new Float64Array(data.count);
  for (let node = data.count - 1; node >= 0; node--) {
    out[node] = Math.max(out[node], total[node] * scale, base[node]);
    if (node) out[parents[node]] += out[node];
  }
  return { scale, out };
}

/** A frame of the tree, or one of the inverted tree, whose children are made when asked for. */
class Bar {
  constructor(label, parent, total, own, base, width, source) {
    Object.assign(this, { label, parent, total, own, base, width, source, made: null, id: bars.length });
    bars.push(this);
  }
  get children() {
    if (!this.made) {
      this.made = state.bottomUp ? callers(this) : callees(this);
      this.made.sort((a, b) => b.width - a.width || a.label - b.label);
    }
    return this.made;
  }
}

function callees(bar) {
  const out = [], { total, own, base, first, next } = tree;
  for (let node = first[bar.source]; node; node = next[node]) {
    out.push(new Bar(labels[node], bar, total[node], own[node], base ? base[node] : 0, wide ? wide.out[node] : total[node], node));
  }
  return out;
}

/** The inverted tree: a bar's source is a list of (node that it stands for, node whose value it is). */
function callers(bar) {
  const groups = new Map(), { own, baseOwn } = tree, pairs = bar.source;
  for (let i = 0; i < pairs.length; i += 2) {
    const at = pairs[i], of = pairs[i + 1];
    if (!at) continue;
    const label = labels[at];
    let group = groups.get(label);
    if (!group) groups.set(label, group = { total: 0, base: 0, width: 0, pairs: [] });
    group.total += own[of];
    if (baseOwn) group.base += baseOwn[of];
    group.width += wide ? Math.max(own[of] * wide.scale, baseOwn[of]) : own[of];
    group.pairs.push(parents[at], of);
  }
  const out = [];
  for (const [label, { total, base, width, pairs }] of groups) {
    out.push(new Bar(label, bar, total, bar.parent ? 0 : total, base, width, pairs));
  }
  return out;
}

function makeRoot() {
  bars = [];
  wide = state.diff && tree.base ? widths() : null;
  const { own, total, base, baseOwn } = tree, all = base ? base[0] : 0;
  if (!state.bottomUp) return new Bar(-1, null, total[0], own[0], all, wide ? wide.out[0] : total[0], 0);
  const pairs = [];
  let width = 0;
  for (let node = 1; node < data.count; node++) {
    if (!(own[node] > 0 || (baseOwn && baseOwn[node] > 0))) continue;
    pairs.push(node, node);
    width += wide ? Math.max(own[node] * wide.scale, baseOwn[node]) : own[node];
  }
  return new Bar(-1, null, total[0], own[0], all, wide ? width : total[0], pairs);
}

// ---- names and numbers ---------------------------------------------------------------------------

const unit = () => data.series[state.series].unit;

function amount(value) {
  const steps = unit() === "bytes" ? [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]
    : unit() === "ns" ? [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]] : null;
  if (!steps) return Math.round(value).toLocaleString("en") + (value === 1 ? " " + data.series[state.series].one : " " + data.series[state.series].many);
  const [size, name] = steps.find(([size]) => Math.abs(value) >= size) || steps[steps.length - 1];
  return (value / size).toLocaleString("en", { maximumSignificantDigits: 4 }) + " " + name;
}

function percent(part, whole) {
  if (!(whole > 0)) return "0 %";
  const share = 100 * part / whole;
  return (share >= 10 || share === 0 ? share.toFixed(1) : share.toPrecision(2)) + " %";
}

const nameOf = (bar) => (bar.label < 0 ? "all" : data.labels[bar.label]);

/** A name as short as it may be. */
function short(bar) {
  const kind = +data.kinds[bar.label];
  return bar.label >= 0 && (kind === JAVA || kind === CLASS) ? nameOf(bar).split("(")[0].split(".").slice(kind === CLASS ? -1 : -2).join(".") : nameOf(bar);
}

// ---- answers -------------------------------------------------------------------------------------

const isJdk = (name) => /^(java|javax|jdk|sun|com\.sun)\./.test(name);
const NAMES = ["", "all", ...data.labels];
const KINDS_OF = "ra" + data.labels.map((name, i) => (data.kinds[i] == JAVA && isJdk(name) ? "d" : "jnkcs"[data.kinds[i]])).join("");

const state = { series: 0, thread: -1, bottomUp: false, flame: false, dark: false, diff: false, search: "" };
let tree, root, bars, wide, zoomed, selected = null, hovered = null, matches = null, found = [], foundAt = -1;

function ancestry(bar) {
  const out = [];
  for (let at = bar; at; at = at.parent) out.push(at);
  return out.reverse();
}

/** The bar at the end of a way, as far as there is one; a step is a label's number or its text. */
function follow(path) {
  let at = root;
  for (const step of path) {
    const child = at.children.find((child) => child.label === step || data.labels[child.label] === step);
    if (!child) break;
    at = child;
  }
  return at;
}

const pathOf = (bar) => ancestry(bar).slice(1).map((one) => one.label);

/** What a window shows, row by row and in a row from left to right; what is below a pixel is one rest. */
async function ask({ node, path, width, from, to }) {
  zoomed = node !== undefined ? bars[node] : path ? follow(path.split(".").map(Number)) : root;
  const begin = from * zoomed.width, end = to * zoomed.width, least = (end - begin) / width;
  const placed = [{ bar: zoomed, left: 0, width: zoomed.width, parent: 0 }], rows = [0];
  for (let first = 0; first < placed.length;) {
    const last = placed.length;
    for (let parent = first; parent < last; parent++) {
      if (!placed[parent].bar) continue;
      let { left } = placed[parent], rest = 0;
      for (const bar of placed[parent].bar.children) {
        // Sorted by width: what follows is narrower.
        if (bar.width < least) { rest += bar.width; continue; }
        if (left < end && left + bar.width > begin) placed.push({ bar, left, width: bar.width, parent });
        left += bar.width;
      }
      if (rest >= least && left < end && left + rest > begin) placed.push({ bar: null, left, width: rest, parent });
    }
    rows.push(first = last);
  }
  const of = (value) => Float64Array.from(placed, value), side = (value) => (wide ? of(value) : null);
  return { count: placed.length, rows, bars: placed.map((one) => one.bar), parent: Int32Array.from(placed, (one) => one.parent),
    label: Int32Array.from(placed, ({ bar }) => (bar ? bar.label + 2 : 0)), left: of((one) => one.left), width: of((one) => one.width),
    node: of(({ bar }) => (bar ? bar.id : -1)), hit: matches ? Uint8Array.from(placed, ({ bar }) => (bar && matches[bar.label] ? 1 : 0)) : new Uint8Array(0),
    value: side(({ bar, width }) => (bar ? bar.total : width)), old: side(({ bar }) => (bar ? bar.base : 1)), fresh: side(({ bar }) => (bar ? bar.total : 1)),
    head: { labels: NAMES, kinds: KINDS_OF, tree: key(), node: zoomed.id, path: pathOf(zoomed).join("."), total: zoomed.total, whole: root.total, width: zoomed.width, from, to,
      crumbs: ancestry(zoomed).map((bar) => ({ node: bar.id, text: nameOf(bar) })), wholes: [root.base, root.total], scatter: data.series[state.series].scatter } };
}

const key = () => [state.series, state.thread, state.bottomUp, state.diff].join();

const flame = new Flame($("stage"), { ask, label: `Flame graph of ${data.title}`,
  selected(answer, i) { selected = answer.bars[i]; showStatus(); },
  hovered(answer, i, x, y) { hovered = i < 0 ? null : answer.bars[i]; showStatus(); showTip(x, y); },
  answered(answer) {
    const { dataset } = flame.canvas;
    dataset.frames = answer.bars.filter(Boolean).length;
    dataset.zoom = nameOf(zoomed);
    dataset.view = state.bottomUp ? "bottom-up" : "top-down";
    flame.host.setAttribute("aria-label", `Flame graph of ${data.title}, zoomed to ${nameOf(zoomed)}`);
    if (selected && !answer.bars.includes(selected)) selected = null;
    hovered = null;
    $("tip").hidden = true;
    showPath();
    writeHash();
    showStatus();
  } });
flame.canvas.id = "graph";

function readHash() {
  const wanted = new URLSearchParams(location.hash.slice(1) || data.opens || "");
  const series = data.series.findIndex((one) => one.name === wanted.get("series"));
  state.series = Math.max(0, series);
  state.thread = data.series[state.series].groups.findIndex((group) => group.name === wanted.get("thread"));
  state.bottomUp = wanted.get("view") === "bottom-up";
  state.flame = wanted.get("root") === "bottom";
  state.diff = !!data.series[state.series].base && wanted.get("diff") !== "off";
  state.search = wanted.get("search") || "";
  const theme = wanted.get("theme");
  state.dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  state.themeChosen = !!theme;
  return wanted.get("zoom");
}

/** Keeps the state in the address, so that a view can be sent to somebody. */
function writeHash() {
  const out = new URLSearchParams();
  if (state.series) out.set("series", data.series[state.series].name);
  if (state.thread >= 0) out.set("thread", data.series[state.series].groups[state.thread].name);
  if (state.bottomUp) out.set("view", "bottom-up");
  if (state.flame) out.set("root", "bottom");
  if (state.search) out.set("search", state.search);
  if (state.themeChosen) out.set("theme", state.dark ? "dark" : "light");
  if (!state.diff && data.series[state.series].base) out.set("diff", "off");
  if (zoomed !== root) out.set("zoom", ancestry(zoomed).slice(1).map((bar) => bar.label).join("."));
  history.replaceState(null, "", "#" + out);
}

// ---- what is said about frames -------------------------------------------------------------------

/** Whether a difference to the baseline is within the samples' noise. */
function isChance(bar) {
  const scatter = data.series[state.series].scatter;
  if (!scatter || !root.total || !root.base) return false;
  const now = bar.total / root.total, then = bar.base / root.base;
  const variance = scatter[0] * then / root.base + scatter[1] * now / root.total;
  return Math.abs(now - then) <= scatter[2] * Math.sqrt(variance);
}

function facts(bar) {
  const out = [`${amount(bar.total)} · ${percent(bar.total, root.total)} of all`];
  if (zoomed !== root && bar !== zoomed) out.push(`${percent(bar.total, zoomed.total)} of ${short(zoomed)}`);
  if (bar.own > 0 && bar.own !== bar.total) out.push(`itself ${amount(bar.own)} (${percent(bar.own, root.total)})`);
  if (data.series[state.series].base) {
    const now = 100 * bar.total / (root.total || 1), then = 100 * bar.base / (root.base || 1);
    out.push(`baseline ${percent(bar.base, root.base)}, change ${now >= then ? "+" : "−"}${Math.abs(now - then).toFixed(2)} points${isChance(bar) ? ", within noise" : ""}`);
  }
  return out;
}

function showStatus() {
  const bar = hovered || selected || zoomed;
  $("status").textContent = `${nameOf(bar)} — ${facts(bar).join(" · ")}`;
}

function showTip(x, y) {
  const tip = $("tip");
  tip.hidden = !hovered;
  if (!hovered) return;
  tip.replaceChildren();
  tip.append(Object.assign(document.createElement("b"), { textContent: nameOf(hovered) }));
  for (const fact of facts(hovered)) tip.append(Object.assign(document.createElement("div"), { textContent: fact }));
  const kind = hovered.label < 0 ? "" : ["", "native code", "kernel", "class of the object", "not code, but an account"][+data.kinds[hovered.label]];
  if (kind) tip.append(Object.assign(document.createElement("span"), { textContent: kind }));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}

function showPath() {
  const path = $("path");
  path.replaceChildren();
  if (zoomed === root) {
    path.textContent = data.series[state.series].name + " · " + amount(root.total) + (state.thread >= 0 ? " in " + data.series[state.series].groups[state.thread].name : "");
    return;
  }
  ancestry(zoomed).forEach((bar, i) => {
    if (i) path.append(" › ");
    const button = Object.assign(document.createElement("button"), { textContent: short(bar), title: nameOf(bar) });
    button.onclick = () => go(bar);
    path.append(button);
  });
  path.scrollLeft = path.scrollWidth;
}

// ---- actions -------------------------------------------------------------------------------------

const go = (bar) => { flame.show({ node: bar.id }); };

/** Shows another tree, as near as it can to the way that was zoomed to. */
function fresh(path = state.bottomUp ? [] : pathOf(zoomed)) {
  root = makeRoot();
  zoomed = follow(path);
  selected = hovered = null;
  foundAt = -1;
  search();
  looks();
  flame.show({ node: zoomed.id });
}

/** Another series or thread. */
function load(path) {
  tree = makeTree(state.series, state.thread);
  fresh(path);
}

function looks() {
  document.documentElement.dataset.theme = state.dark ? "dark" : "light";
  const press = (id, on) => $(id).setAttribute("aria-pressed", on);
  $("theme").textContent = state.dark ? "Light" : "Dark";
  press("bottom-up", state.bottomUp);
  press("flip", state.flame);
  press("diff", state.diff);
  $("diff").hidden = !data.series[state.series].base;
  for (const id of ["allocated", "live", "bytes", "objects"]) {
    press(id, (data.series[state.series].memory || "").split(" ").includes(id));
    $(id).disabled = (id === "allocated" || id === "live" ? memoryOf(id) : memoryOf(null, id)) < 0;
  }
  for (const id of ["waiters", "owners"]) press(id, data.series[state.series].stands === id);
  flame.upside = state.flame;
  flame.recolour();
}

/** Marks what matches, and says how much of the whole lies in it. Nested matches count once. */
function search() {
  const text = state.search;
  matches = null;
  found = [];
  $("matched").textContent = "";
  if (!text) return;
  let test;
  try { const pattern = new RegExp(text, "i"); test = (name) => pattern.test(name); } catch { const low = text.toLowerCase(); test = (name) => name.toLowerCase().includes(low); }
  matches = data.labels.map(test);
  const inside = new Uint8Array(data.count);
  let sum = 0;
  for (let node = 1; node < data.count; node++) {
    if (inside[parents[node]]) { inside[node] = 1; continue; }
    if (matches[labels[node]]) { inside[node] = 1; sum += tree.total[node]; if (tree.total[node] > 0) found.push(node); }
  }
  found.sort((a, b) => tree.total[b] - tree.total[a]);
  $("matched").textContent = found.length ? percent(sum, tree.total[0]) + " matched" : "no match";
}

function nextMatch(step) {
  if (!found.length) return;
  foundAt = (foundAt + step + found.length) % found.length;
  const path = [];
  if (state.bottomUp) path.push(labels[found[foundAt]]);
  else for (let node = found[foundAt]; node; node = parents[node]) path.unshift(labels[node]);
  const bar = follow(path);
  flame.show({ node: (bar.parent && !state.bottomUp ? bar.parent : bar).id }).then(() => flame.choose(Math.max(0, flame.answer.bars.indexOf(bar))));
}

function toggle(key) {
  state[key] = !state[key];
  if (key === "dark") state.themeChosen = true;
  if (key === "bottomUp" || key === "diff") return fresh(key === "diff" ? undefined : []);
  looks();
  writeHash();
  if (key === "flame") flame.goHome();
}

function chooseThread(thread) {
  state.thread = thread;
  $("thread").value = thread;
  load();
}

function chooseSeries(series) {
  const name = state.thread >= 0 ? data.series[state.series].groups[state.thread].name : null;
  state.series = series;
  $("series").value = series;
  state.thread = data.series[series].groups.findIndex((group) => group.name === name);
  state.diff = state.diff && !!data.series[series].base;
  fillThreads();
  load();
}

/** The memory series that a click leads to: `allocated` or `live`, of `bytes` or `objects`. */
function memoryOf(what, unit) {
  const [nowWhat, nowUnit] = (data.series[state.series].memory || "allocated bytes").split(" ");
  const wanted = `${what || nowWhat} ${unit || nowUnit}`;
  return data.series.findIndex((one) => one.memory === wanted);
}

const chooseMemory = (what, unit) => { const found = memoryOf(what, unit); if (found >= 0) chooseSeries(found); };

/** The other of two, where the graph shows the first. */
const otherOf = (one, two) => ((data.series[state.series].memory || "").includes(one) ? two : one);

/** Blocked time by `waiters`, or with the `owners` of the locks below them. */
const standing = (what) => data.series.findIndex((one) => one.stands === what);
const chooseStanding = (what) => { const found = standing(what); if (found >= 0) chooseSeries(found); };

function fillThreads() {
  const groups = data.series[state.series].groups, select = $("thread");
  const whole = groups.reduce((sum, group) => sum + group.total, 0);
  select.replaceChildren(new Option("all threads", -1));
  groups.forEach((group, i) => select.append(new Option(`${group.name} · ${percent(group.total, whole)}`, i)));
  $("thread-box").hidden = groups.length < 2;
  select.value = state.thread;
}

const keys = {
  "/": () => $("search").focus(), b: () => toggle("bottomUp"), r: () => toggle("flame"), d: () => toggle("dark"),
  c: () => !$("diff").hidden && toggle("diff"), n: () => nextMatch(1), N: () => nextMatch(-1), "?": () => $("help").showModal(),
  Escape: () => flame.out(), s: () => chooseSeries((state.series + 1) % data.series.length),
  w: () => chooseStanding(data.series[state.series].stands === "owners" ? "waiters" : "owners"),
  l: () => chooseMemory(otherOf("allocated", "live")), o: () => chooseMemory(null, otherOf("bytes", "objects")),
  t: () => stepThread(1), T: () => stepThread(-1),
  y: () => navigator.clipboard && navigator.clipboard.writeText(nameOf(hovered || selected || zoomed)),
};

function stepThread(step) {
  const count = data.series[state.series].groups.length + 1;
  chooseThread((state.thread + 1 + step + count) % count - 1);
}

// ---- the page ------------------------------------------------------------------------------------

function start() {
  const wanted = readHash();
  $("title").textContent = $("title").title = document.title = data.title;
  data.series.forEach((one, i) => $("series").append(new Option(one.name, i)));
  // Where all series are of memory, the buttons choose among them.
  const inMemory = data.series.filter((one) => one.memory).length;
  $("memory").hidden = inMemory < 2;
  $("series-box").hidden = data.series.length < 2 || (inMemory > 1 && inMemory === new Set(data.series.map((one) => one.memory)).size && inMemory === data.series.length);
  $("locks").hidden = standing("waiters") < 0 || standing("owners") < 0;
  $("series").value = state.series;
  $("notes").textContent = $("notes").title = data.notes.join(" · ");
  $("facts").textContent = data.facts.map(([key, value]) => `${key}: ${value}`).join("\n");
  for (const [kind, text] of LEGEND.filter(([kind]) => kind !== "g")) {
    const box = document.createElement("i");
    box.style.background = css(frameColour(kind, null, state.dark));
    $("legend").append(box, text);
  }
  if (data.series.some((one) => one.base)) $("legend").append(". Diff: orange grew, blue shrank, against the baseline, as shares; hatched vanished, dotted is new; what is pale is little or within the samples' noise.");
  $("search").value = state.search;
  fillThreads();
  load(wanted ? wanted.split(".").map(Number) : location.hash.length > 1 ? [] : data.zoom);

  $("series").onchange = (event) => chooseSeries(+event.target.value);
  $("thread").onchange = (event) => chooseThread(+event.target.value);
  for (const id of ["waiters", "owners"]) $(id).onclick = () => chooseStanding(id);
  for (const id of ["allocated", "live"]) $(id).onclick = () => chooseMemory(id);
  for (const id of ["bytes", "objects"]) $(id).onclick = () => chooseMemory(null, id);
  $("bottom-up").onclick = () => toggle("bottomUp");
  $("flip").onclick = () => toggle("flame");
  $("diff").onclick = () => toggle("diff");
  $("reset").onclick = () => { state.search = $("search").value = ""; search(); flame.show({}); };
  $("theme").onclick = () => toggle("dark");
  $("help-button").onclick = () => $("help").showModal();
  let typing;
  $("search").oninput = (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => { state.search = event.target.value; foundAt = -1; search(); flame.again(); }, 80);
  };
  $("search").onkeydown = (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { event.target.value = state.search = ""; search(); flame.again(); flame.host.focus(); }
    event.stopPropagation();
  };
  document.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT" || $("help").open) return;
    const action = keys[event.key];
    if (action) action();
    else if (event.target.tagName === "BUTTON" || !flame.key(event)) return;
    event.preventDefault();
  };
  flame.host.focus();
}

start();
})();
