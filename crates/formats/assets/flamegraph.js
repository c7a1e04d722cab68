// The flame graph's page. Data comes as compact numbers (see html.rs); only what is wide enough to be
// seen becomes an object and a rectangle, so that a page with hundreds of thousands of nodes is quick.
"use strict";
(() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

const ROW = 19, MIN_WIDTH = 0.6, FONT = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const JAVA = 0, NATIVE = 1, KERNEL = 2, CLASS = 3, SPECIAL = 4;

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
  return { own, total, base: baseTotal, first, next };
}

/** A bar: a node of the tree, or one of the inverted tree, whose children are made when asked for. */
class Bar {
  constructor(label, parent, total, own, base, source) {
    Object.assign(this, { label, parent, total, own, base, source, made: null, depth: parent ? parent.depth + 1 : 0 });
  }
  get children() {
    if (!this.made) {
      this.made = state.bottomUp ? callers(this) : callees(this);
      // With a baseline, what vanished has no width; it is still counted.
      this.made.sort((a, b) => b.total - a.total || a.label - b.label);
    }
    return this.made;
  }
}

function callees(bar) {
  const out = [], { total, own, base, first, next } = tree;
  for (let node = first[bar.source]; node; node = next[node]) {
    out.push(new Bar(labels[node], bar, total[node], own[node], base ? base[node] : 0, node));
  }
  return out;
}

/** The inverted tree: a bar's source is a list of (node that it stands for, node whose value it is). */
function callers(bar) {
  const groups = new Map(), { own } = tree, pairs = bar.source;
  for (let i = 0; i < pairs.length; i += 2) {
    const at = pairs[i];
    if (!at) continue;
    const label = labels[at];
    let group = groups.get(label);
    if (!group) groups.set(label, group = { total: 0, base: 0, pairs: [] });
    group.total += own[pairs[i + 1]];
    if (tree.baseOwn) group.base += tree.baseOwn[pairs[i + 1]];
    group.pairs.push(parents[at], pairs[i + 1]);
  }
  const out = [];
  for (const [label, { total, base, pairs }] of groups) {
    out.push(new Bar(label, bar, total, bar.parent ? 0 : total, base, pairs));
  }
  return out;
}

function makeRoot() {
  const base = tree.base ? tree.base[0] : 0;
  if (!state.bottomUp) return new Bar(-1, null, tree.total[0], tree.own[0], base, 0);
  const pairs = [];
  if (tree.base && !tree.baseOwn) {
    tree.baseOwn = tree.base.slice();
    for (let node = data.count - 1; node > 0; node--) tree.baseOwn[parents[node]] -= tree.base[node];
  }
  for (let node = 1; node < data.count; node++) {
    if (tree.own[node] > 0 || (tree.baseOwn && tree.baseOwn[node] > 0)) pairs.push(node, node);
  }
  return new Bar(-1, null, tree.total[0], tree.own[0], base, pairs);
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

/** The longest form of a name that fits: with package, with class, method alone, cut. */
function fit(label, room) {
  if (room < 2) return "";
  const name = data.labels[label];
  if (name.length <= room) return name;
  if (data.kinds[label] == JAVA || data.kinds[label] == CLASS) {
    const parts = name.split(".");
    for (const keep of data.kinds[label] == CLASS ? [1] : [2, 1]) {
      const short = parts.slice(-keep).join(".");
      if (short.length <= room) return short;
    }
    return parts[parts.length - 1].slice(0, room - 1) + "…";
  }
  return name.slice(0, room - 1) + "…";
}

// ---- colours -------------------------------------------------------------------------------------

const colours = new Map();
// Far enough from each other and from the hues of other kinds of frames.
const OWN_HUES = [62, 84, 108, 135, 158, 178, 318, 342];
const isJdk = (name) => /^(java|javax|jdk|sun|com\.sun)\./.test(name);

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

/** Methods of one package look alike; what is not the program's own is paler or of another kind. */
function hue(label) {
  const kind = +data.kinds[label], name = data.labels[label];
  if (kind === SPECIAL) return [0, 0];
  if (kind === NATIVE) return [38, 70];
  if (kind === KERNEL) return [12, 75];
  if (kind === CLASS) return [275, 45];
  if (isJdk(name)) return [205, 24];
  const parts = name.split(".").slice(0, -2);
  return [OWN_HUES[hash(parts.slice(0, 3).join(".")) % OWN_HUES.length], 48];
}

function plainColour(label) {
  let colour = colours.get(label);
  if (!colour) {
    const [angle, strength] = hue(label), wobble = hash(data.labels[label]) % 8;
    const light = state.dark ? 30 + wobble : 76 + wobble;
    colours.set(label, colour = `hsl(${angle} ${strength}% ${light}%)`);
  }
  return colour;
}

/** Whether a difference to the baseline is within the samples' noise. */
function isChance(bar) {
  const scatter = data.series[state.series].scatter;
  if (!scatter || !root.total || !root.base) return false;
  const now = bar.total / root.total, then = bar.base / root.base;
  const variance = scatter[0] * then / root.base + scatter[1] * now / root.total;
  return Math.abs(now - then) <= scatter[2] * Math.sqrt(variance);
}

/** Red for what grew, blue for what shrank: the paler, the less of the frame or of the whole it is; grey for chance. */
function diffColour(bar) {
  if (isChance(bar)) return state.dark ? "#3f444b" : "#d3d6da";
  const now = bar.total / (root.total || 1), then = bar.base / (root.base || 1);
  const change = (now - then) / Math.max(now, then, 1e-12);
  const strength = Math.min(1, Math.abs(change) * 1.2) * Math.sqrt(Math.min(1, Math.abs(now - then) / 0.005));
  const light = state.dark ? 26 + 16 * strength : 93 - 33 * strength;
  return `hsl(${change > 0 ? 4 : 217} ${Math.round(75 * strength)}% ${light}%)`;
}

const colour = (bar) => (bar.label < 0 ? (state.dark ? "#3a4048" : "#dfe3e8") : state.diff ? diffColour(bar) : plainColour(bar.label));

// ---- state ---------------------------------------------------------------------------------------

const state = { series: 0, thread: -1, bottomUp: false, flame: false, dark: false, diff: false, search: "" };
let tree, root, zoomed, selected = null, hovered = null, matches = null, found = [], foundAt = -1, rows = [], measure = 7.2;

function readHash() {
  const wanted = new URLSearchParams(location.hash.slice(1));
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

function ancestry(bar) {
  const out = [];
  for (let at = bar; at; at = at.parent) out.push(at);
  return out.reverse();
}

/** The bar at the end of a path of labels, as far as there is one. */
function follow(path) {
  let at = root;
  for (const label of path) {
    const child = at.children.find((child) => child.label === label);
    if (!child) break;
    at = child;
  }
  return at;
}

const pathOf = (bar) => ancestry(bar).slice(1).map((one) => one.label);

// ---- layout and drawing --------------------------------------------------------------------------

const canvas = $("graph"), stage = $("stage"), context = canvas.getContext("2d");

/** Rectangles, row by row and from left to right; sorted children make the invisible ones the last. */
function layout() {
  rows = [];
  const width = stage.clientWidth;
  for (const bar of ancestry(zoomed).slice(0, -1)) rows.push([{ bar, x: 0, w: width, outer: true }]);
  const work = [{ bar: zoomed, x: 0, w: width }];
  const scale = zoomed.total > 0 ? width / zoomed.total : 0;
  while (work.length) {
    const box = work.pop(), depth = box.bar ? box.bar.depth : box.depth;
    (rows[depth] = rows[depth] || []).push(box);
    if (!box.bar) continue;
    const inner = [];
    let x = box.x;
    let rest = 0;
    for (const child of box.bar.children) {
      const w = child.total * scale;
      if (w < MIN_WIDTH) { rest += w; continue; }
      inner.push({ bar: child, x, w });
      x += w;
    }
    // Many that cannot be seen one by one are a shadow together, so that no width looks lost.
    if (rest >= 1) inner.push({ bar: null, x, w: rest, depth: depth + 1 });
    // The last is worked on first, so they are pushed backwards.
    for (let i = inner.length - 1; i >= 0; i--) work.push(inner[i]);
  }
  $("spacer").style.height = Math.max(0, rows.length * ROW + 6 - stage.clientHeight) + "px";
}

const top = (depth) => (state.flame ? Math.max(stage.clientHeight, rows.length * ROW + 6) - (depth + 1) * ROW - 3 : depth * ROW + 3) - stage.scrollTop;

function draw() {
  const width = stage.clientWidth, height = stage.clientHeight, ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(document.documentElement), mark = style.getPropertyValue("--mark");
  const front = state.dark ? "#f2f3f5" : "#16181b", back = style.getPropertyValue("--back"), line = style.getPropertyValue("--line");
  context.fillStyle = back;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  measure = context.measureText("mmmmmmmmmm").width / 10;
  context.textBaseline = "middle";
  let drawn = 0;
  rows.forEach((row, depth) => {
    const y = top(depth);
    if (y < -ROW || y > height) return;
    for (const { bar, x, w, outer } of row) {
      if (!bar) {
        context.fillStyle = line;
        context.fillRect(x, y, w, ROW - 1);
        continue;
      }
      drawn++;
      const hit = matches && bar.label >= 0 && matches[bar.label];
      const gap = w > 3 ? 1 : w > 1.5 ? 0.5 : 0;
      context.globalAlpha = outer ? 0.45 : matches && !hit ? 0.35 : 1;
      context.fillStyle = hit ? mark : colour(bar);
      context.fillRect(x, y, w - gap, ROW - 1);
      context.globalAlpha = outer ? 0.7 : matches && !hit ? 0.6 : 1;
      const room = Math.floor((w - 8) / measure);
      const text = bar.label < 0 ? (room > 2 ? "all · " + amount(bar.total) : "") : fit(bar.label, room);
      if (text && room > 1) {
        context.fillStyle = hit ? back : front;
        context.fillText(text, Math.max(x, 0) + 4, y + ROW / 2);
      }
      context.globalAlpha = 1;
      if (bar === selected || bar === hovered) {
        context.strokeStyle = front;
        context.lineWidth = bar === selected ? 2 : 1;
        context.strokeRect(x + 1, y + 1, Math.max(0, w - gap - 2), ROW - 3);
      }
    }
  });
  canvas.dataset.frames = drawn;
}

/** The box below a point of the canvas. */
function at(x, y) {
  const height = Math.max(stage.clientHeight, rows.length * ROW + 6);
  const depth = Math.floor((state.flame ? height - 3 - (y + stage.scrollTop) : y + stage.scrollTop - 3) / ROW);
  const row = rows[depth];
  if (!row) return null;
  let low = 0, high = row.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1, box = row[middle];
    if (x < box.x) high = middle - 1;
    else if (x >= box.x + box.w) low = middle + 1;
    else return box.bar;
  }
  return null;
}

// ---- what is said about bars ---------------------------------------------------------------------

function facts(bar) {
  const out = [`${amount(bar.total)} · ${percent(bar.total, root.total)} of all`];
  if (zoomed !== root && bar.depth >= zoomed.depth) out.push(`${percent(bar.total, zoomed.total)} of ${short(zoomed)}`);
  if (bar.own > 0 && bar.own !== bar.total) out.push(`itself ${amount(bar.own)} (${percent(bar.own, root.total)})`);
  if (data.series[state.series].base) {
    const now = 100 * bar.total / (root.total || 1), then = 100 * bar.base / (root.base || 1);
    out.push(`baseline ${percent(bar.base, root.base)}, change ${now >= then ? "+" : "−"}${Math.abs(now - then).toFixed(2)} points${isChance(bar) ? ", within noise" : ""}`);
  }
  return out;
}

const short = (bar) => (bar.label < 0 ? "all" : fit(bar.label, 40));

function showStatus() {
  const bar = hovered || selected || zoomed;
  $("status").textContent = `${nameOf(bar)} — ${facts(bar).join(" · ")}`;
}

function showTip(event) {
  const tip = $("tip");
  tip.hidden = !hovered;
  if (!hovered) return;
  tip.replaceChildren();
  tip.append(Object.assign(document.createElement("b"), { textContent: nameOf(hovered) }));
  for (const fact of facts(hovered)) tip.append(Object.assign(document.createElement("div"), { textContent: fact }));
  const kind = hovered.label < 0 ? "" : ["", "native code", "kernel", "class of the object", "not code, but an account"][+data.kinds[hovered.label]];
  if (kind) tip.append(Object.assign(document.createElement("span"), { textContent: kind }));
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
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
    button.onclick = () => zoom(bar);
    path.append(button);
  });
  path.scrollLeft = path.scrollWidth;
}

// ---- actions -------------------------------------------------------------------------------------

/** Draws anew after a change of the given size: the data, what is shown of it, or only its looks. */
function refresh(change) {
  if (change === "data" || change === "root") {
    const path = zoomed && change === "data" ? pathOf(zoomed) : [];
    if (change === "data") tree = makeTree(state.series, state.thread);
    root = makeRoot();
    zoomed = follow(path);
    selected = hovered = null;
    foundAt = -1;
    search();
  }
  if (change !== "looks") layout();
  document.documentElement.dataset.theme = state.dark ? "dark" : "light";
  const press = (id, on) => $(id).setAttribute("aria-pressed", on);
  if (!hovered) $("tip").hidden = true;
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
  canvas.dataset.zoom = nameOf(zoomed);
  canvas.dataset.view = state.bottomUp ? "bottom-up" : "top-down";
  canvas.setAttribute("aria-label", `Flame graph of ${data.title}, zoomed to ${nameOf(zoomed)}`);
  if (change !== "looks") { showPath(); writeHash(); }
  showStatus();
  draw();
}

function zoom(bar) {
  zoomed = bar;
  selected = bar === root ? null : bar;
  hovered = null;
  refresh("zoom");
  stage.scrollTop = state.flame ? stage.scrollHeight : Math.max(0, (bar.depth - 3) * ROW);
  draw();
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
  zoom(bar.parent && !state.bottomUp ? bar.parent : bar);
  selected = bar;
  refresh("looks");
}

function toggle(key) {
  state[key] = !state[key];
  if (key === "dark") { state.themeChosen = true; colours.clear(); refresh("looks"); writeHash(); return; }
  refresh(key === "bottomUp" ? "root" : "zoom");
  if (key === "flame") { stage.scrollTop = state.flame ? stage.scrollHeight : 0; draw(); }
}

function chooseThread(thread) {
  state.thread = thread;
  $("thread").value = thread;
  refresh("data");
}

function chooseSeries(series) {
  const name = state.thread >= 0 ? data.series[state.series].groups[state.thread].name : null;
  state.series = series;
  $("series").value = series;
  state.thread = data.series[series].groups.findIndex((group) => group.name === name);
  state.diff = state.diff && !!data.series[series].base;
  fillThreads();
  refresh("data");
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

/** Moves the selection: towards the root, away from it, or along the row. */
function move(key) {
  if (!selected) { selected = zoomed; return refresh("looks"); }
  const outward = state.flame ? "ArrowDown" : "ArrowUp", inward = state.flame ? "ArrowUp" : "ArrowDown";
  let next = null;
  if (key === outward) next = selected.parent;
  else if (key === inward) next = selected.children[0];
  else {
    const row = rows[selected.depth] || [], i = row.findIndex((box) => box.bar === selected);
    next = (row[i + (key === "ArrowRight" ? 1 : -1)] || {}).bar;
  }
  if (next && next.total > 0) selected = next;
  const y = top(selected.depth);
  if (y < 0 || y > stage.clientHeight - ROW) stage.scrollTop += y - stage.clientHeight / 2;
  refresh("looks");
}

const keys = {
  "/": () => $("search").focus(), b: () => toggle("bottomUp"), r: () => toggle("flame"), d: () => toggle("dark"),
  c: () => !$("diff").hidden && toggle("diff"), 0: () => zoom(root), Home: () => zoom(root),
  n: () => nextMatch(1), N: () => nextMatch(-1), "?": () => $("help").showModal(),
  Escape: () => zoom(zoomed.parent || root), Backspace: () => zoom(zoomed.parent || root),
  Enter: () => selected && zoom(selected), s: () => chooseSeries((state.series + 1) % data.series.length),
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
  const legend = [["hsl(120 48% 60%)", "your packages, by colour"], ["hsl(205 24% 65%)", "JDK"], ["hsl(38 70% 60%)", "native"], ["hsl(12 75% 60%)", "kernel"], ["hsl(275 45% 65%)", "class of the objects"], ["#999", "not code"]];
  for (const [colour, text] of legend) {
    const box = document.createElement("i");
    box.style.background = colour;
    $("legend").append(box, text);
  }
  if (data.series.some((one) => one.base)) $("legend").append(". Diff: red grew, blue shrank, against the baseline, as shares; grey is within the samples' noise.");
  $("search").value = state.search;
  fillThreads();
  refresh("data");
  if (wanted) zoom(follow(wanted.split(".").map(Number)));

  $("series").onchange = (event) => chooseSeries(+event.target.value);
  $("thread").onchange = (event) => chooseThread(+event.target.value);
  for (const id of ["waiters", "owners"]) $(id).onclick = () => chooseStanding(id);
  for (const id of ["allocated", "live"]) $(id).onclick = () => chooseMemory(id);
  for (const id of ["bytes", "objects"]) $(id).onclick = () => chooseMemory(null, id);
  $("bottom-up").onclick = () => toggle("bottomUp");
  $("flip").onclick = () => toggle("flame");
  $("diff").onclick = () => toggle("diff");
  $("reset").onclick = () => { state.search = $("search").value = ""; search(); zoom(root); };
  $("theme").onclick = () => toggle("dark");
  $("help-button").onclick = () => $("help").showModal();
  let typing;
  $("search").oninput = (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => { state.search = event.target.value; foundAt = -1; search(); refresh("zoom"); }, 80);
  };
  $("search").onkeydown = (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { event.target.value = state.search = ""; search(); refresh("zoom"); stage.focus(); }
    event.stopPropagation();
  };
  canvas.onmousemove = (event) => {
    const next = at(event.offsetX, event.offsetY);
    if (next !== hovered) { hovered = next; showStatus(); draw(); }
    showTip(event);
  };
  canvas.onmouseleave = () => { hovered = null; $("tip").hidden = true; showStatus(); draw(); };
  canvas.onclick = (event) => { const bar = at(event.offsetX, event.offsetY); if (bar) zoom(bar); };
  canvas.style.cursor = "pointer";
  stage.onscroll = draw;
  new ResizeObserver(() => { layout(); draw(); }).observe(stage);
  document.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT" || $("help").open) return;
    if (event.key.startsWith("Arrow")) { event.preventDefault(); return move(event.key); }
    const action = keys[event.key];
    if (action) { event.preventDefault(); action(); }
  };
  stage.focus();
}

start();
})();
