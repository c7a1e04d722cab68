// The frame of every page: head, rail, strip, chips, keys, and the stream of ticks. What a page
// shows is in its own file; this one starts it, tells it what changed, and says how old the data is.

import { $, answered, button, copy, h, menu, tip, toast } from "./dom.js";
import { ApiError, Panel, get, hasToken, hooks, idle, login, raw } from "./api.js";
import { amount, count, time } from "./figures.js";
import { FLAGS, VIEW_KEYS, changed, command, fragment, go, onChange, read, series, seriesName, set, state, view } from "./state.js";
import { Strip } from "./lanes.js";
import { LEGEND, css, frameColour } from "./palette.js";
import { heard as heardExactly, recordButton, switched, woven } from "./live.js";
import { heapPage } from "./heap.js";
import { overview } from "./overview.js";
import { flamePage, sandwichPage } from "./graphs.js";
import { methodsPage, treePage } from "./methods.js";
import { sourcePage } from "./code.js";
import { threadsPage, timelinePage } from "./times.js";
import { classesPage, diffPage, locksPage, memoryPage } from "./sections.js";

/**
 * @typedef {object} Page
 * @property {(why: "view" | "own" | "epoch") => void} update
 * @property {() => void} [close]
 * @property {(event: KeyboardEvent) => boolean} [key]
 * @property {() => {text: string, hint?: string, run: () => void}[]} [share]
 * @property {() => void} [look]    another theme
 */

/** @type {Record<string, {title: string, key: string, start: (host: HTMLElement) => Page}>} */
const PAGES = {
  overview: { title: "Overview", key: "o", start: overview },
  timeline: { title: "Timeline", key: "i", start: timelinePage },
  flame: { title: "Flame graph", key: "f", start: flamePage },
  methods: { title: "Methods", key: "m", start: methodsPage },
  tree: { title: "Call tree", key: "c", start: treePage },
  sandwich: { title: "Sandwich", key: "s", start: sandwichPage },
  source: { title: "Source", key: "u", start: sourcePage },
  threads: { title: "Threads", key: "t", start: threadsPage },
  locks: { title: "Locks", key: "l", start: locksPage },
  memory: { title: "Memory", key: "e", start: memoryPage },
  heap: { title: "Heap", key: "p", start: heapPage },
  classes: { title: "Classes", key: "a", start: classesPage },
  diff: { title: "Diff", key: "d", start: diffPage },
};

/** A heap dump is of a moment, and of no run. */
const timeless = () => state.run.source === "file" && !state.run.series.length;

/** Pages of one method, which other pages lead to. */
const UNLISTED = ["sandwich", "source"];

const FILTERS = { native: "Native, JVM and kernel frames", idle: "Idle threads", "hide-jdk": "Hide the JDK's frames",
  "java-only": "Java frames only", "fold-recursion": "Merge recursion", stable: "Stable names of lambdas and proxies" };
/** @type {Record<string, string>} */
const CHIPS = { native: "native frames", idle: "idle threads", "hide-jdk": "without the JDK", "java-only": "Java only", "fold-recursion": "recursion merged", stable: "stable names" };
const GROUPS = ["method", "line", "class", "package", "jar", "loader"];

/** @type {Page | null} */
let page = null;
let shown = "";
/** @type {Strip} */
let strip;
/** @type {Panel<any>} */
let stripPanel;
/** @type {HTMLSelectElement} */
let metric;
/** @type {HTMLInputElement} */
let search;
const chips = h("div", { class: "chips" }), age = h("output", { class: "age", "data-age": "" });
let typing = 0;

// ---- the head ------------------------------------------------------------------------------------

function head() {
  const { run } = state;
  metric = h("select", { "aria-label": "What is shown", change: () => set({ metric: metric.value, path: null, method: null }) },
    ...run.series.map((one) => h("option", { value: one.id }, seriesName(one))));
  search = h("input", { type: "search", placeholder: "Search  /", "aria-label": "Search methods", spellcheck: "false", autocomplete: "off",
    input: () => { clearTimeout(typing); typing = setTimeout(() => set({ q: search.value || null }), 180); },
    keydown: (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key === "Escape") { search.value = ""; set({ q: null }); search.blur(); }
      if (event.key === "Enter") {
        clearTimeout(typing);
        if (["flame", "methods"].includes(state.page)) set({ q: search.value || null });
        else go("methods", { q: search.value || null });
      }
    } });
  const facts = run.run || {}, name = run.name;
  $("bar").replaceChildren(
    h("a", { class: "brand", href: "#/overview" }, "tare"),
    h("div", { class: "who" }, h("h1", { title: run.headline.join("\n") }, name),
      h("span", { class: "dim" }, [facts.pid ? `pid ${facts.pid}` : "", facts.jdk ? `JDK ${facts.jdk}` : ""].filter(Boolean).join(" · "))),
    age, woven, ...(timeless() ? [h("span", { class: "space" })] : [metric, chips, h("span", { class: "space" }), search]),
    h("div", { class: "buttons" }, recordButton(),
      timeless() ? "" : button("Filter", (event) => filterMenu(anchorOf(event)), { title: "Filters and grouping", "aria-haspopup": "dialog" }),
      button("Share", (event) => shareMenu(anchorOf(event)), { title: "Links, commands, files and pictures", "aria-haspopup": "dialog" }),
      button("◐", nextTheme, { title: "Theme: dark, light, or as the system", "aria-label": "Theme" }),
      button("?", help, { title: "Keys and colours", "aria-label": "Help" })));
}

/** @param {MouseEvent} event */
const anchorOf = (event) => /** @type {HTMLElement} */ (event.currentTarget);

function rail() {
  $("rail").replaceChildren(...state.run.pages.flatMap(({ page: id, has, how }) => {
    const known = PAGES[id];
    if (!known || UNLISTED.includes(id)) return [];
    return [h("a", { href: fragment(id, view()), "data-page": id, class: has || id === "diff" ? "" : "lacks",
      title: has || id === "diff" ? `g ${known.key}` : how || "", "aria-current": state.page === id ? "page" : null,
      click: (/** @type {MouseEvent} */ event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        go(id);
      } }, known.title)];
  }));
  $("rail").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

function chip(/** @type {string} */ key, /** @type {string} */ value, /** @type {string} */ text) {
  return h("span", { class: "chip" }, text, button("×", () => {
    set({ [key]: FLAGS.includes(key) ? null : state.query.getAll(key).filter((one) => one !== value), path: null });
  }, { "aria-label": `Remove the filter ${text}` }));
}

function drawChips() {
  const out = [];
  for (const key of VIEW_KEYS) {
    if (key === "metric") continue;
    for (const value of state.query.getAll(key)) {
      if (FLAGS.includes(key)) out.push(chip(key, value, CHIPS[key]));
      else out.push(chip(key, value, `${key === "by" ? "by" : key === "root" ? "below" : key} ${value}`));
    }
  }
  chips.replaceChildren(...out);
}

/** @param {HTMLElement} anchor */
function filterMenu(anchor) {
  const flag = (/** @type {string} */ key, /** @type {string} */ text) => h("label", null,
    h("input", { type: "checkbox", checked: state.query.has(key), change: (/** @type {any} */ event) => set({ [key]: event.target.checked }) }), text);
  const field = (/** @type {string} */ key, /** @type {string} */ text, /** @type {string} */ hint) => h("form", {
    submit: (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const input = /** @type {HTMLInputElement} */ (/** @type {HTMLElement} */ (event.currentTarget).querySelector("input"));
      if (input.value.trim()) set({ [key]: key === "time" ? input.value.trim() : [...new Set([...state.query.getAll(key), input.value.trim()])] });
      input.value = "";
    } }, h("label", null, h("span", null, text), h("input", { placeholder: hint, spellcheck: "false" })));
  menu(anchor, [
    h("label", null, h("span", null, "Group by"), h("select", { change: (/** @type {any} */ event) => set({ by: event.target.value === "method" ? null : event.target.value, path: null }) },
      ...GROUPS.map((by) => h("option", { selected: (state.query.get("by") || "method") === by }, by)))),
    ...Object.entries(FILTERS).map(([key, text]) => flag(key, text)), h("hr"),
    field("thread", "Thread", "name, or pool-*"), field("package", "Package", "com.acme"),
    field("root", "Below method", "com.acme.Orders.place"), field("time", "Time", "3.2s..5s"),
    h("p", { class: "dim" }, "Enter adds a filter"),
  ]);
}

// ---- share ---------------------------------------------------------------------------------------

/** @param {HTMLElement} anchor */
function shareMenu(anchor) {
  menu(anchor, [
    { text: "Copy as command", hint: "y", run: () => copy(command(), "Command") },
    { text: "Copy link", hint: "for this machine", run: () => copy(location.href, "Link") },
    ...(page?.share?.() || []),
    { text: "Print", run: () => print() }, h("hr"), h("p", { class: "dim" }, "What is shown, as a file"),
    ...state.run.exports.map((one) => ({ text: one.about, hint: one.ending, run: () => save(one) })),
  ]);
}

/** @param {{format: string, about: string, ending: string}} as */
async function save(as) {
  toast("Being written …");
  try {
    const { query } = state, flip = localStorage.getItem("tare-upside") === "1" ? 1 : null;
    const answer = await raw(`/api/export?${view({ format: as.format, path: query.get("path"), q: query.get("q"), against: query.get("against"), flip })}`);
    const named = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
    download(await answer.blob(), named ? named[1] : `tare${as.ending}`);
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error));
  }
}

/** @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// ---- theme and help ------------------------------------------------------------------------------

function theme() {
  const chosen = localStorage.getItem("tare-theme"), dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen || (dark ? "dark" : "light");
  looks();
}

/** Paints anew what the theme changes. */
function looks() {
  document.querySelectorAll("canvas").forEach((canvas) => canvas.dispatchEvent(new Event("tare-look")));
  page?.look?.();
  strip?.draw();
}

function nextTheme() {
  const order = ["dark", "light", ""], now = localStorage.getItem("tare-theme") || "";
  const next = order[(order.indexOf(now) + 1) % 3];
  if (next) localStorage.setItem("tare-theme", next);
  else localStorage.removeItem("tare-theme");
  theme();
  toast(next ? `${next} theme` : "as the system");
}

const KEYS = [["/", "search"], ["g, then a letter", Object.values(PAGES).map((one) => `${one.key} ${one.title.toLowerCase()}`).join(", ")],
  ["[ ]", "the part of the run before, after"], ["Esc", "clear the last filter, close"], ["Space", "pause live figures"],
  ["y", "copy as command"], ["arrows, Enter", "choose, open; in the flame graph zoom"], ["Backspace", "zoom out"], ["0", "the whole graph"],
  ["n N", "next, previous match"], ["+ −, Ctrl-wheel", "widen, narrow"], ["Shift-wheel, drag", "move sideways"], ["r", "root at the bottom or at the top"], ["v", "the graph as a table"]];

function help() {
  const dark = document.documentElement.dataset.theme === "dark";
  const box = h("dialog", { class: "box", "aria-label": "Help", close: () => box.remove() },
    h("h2", null, "Keys"), h("dl", null, ...KEYS.flatMap(([key, text]) => [h("dt", null, key), h("dd", null, text)])),
    h("h2", null, "Colours of frames"),
    h("ul", { class: "legend" }, ...LEGEND.map(([kind, text]) => {
      const patch = h("i");
      patch.style.background = css(frameColour(kind, null, dark));
      return h("li", null, patch, text);
    })),
    h("h2", null, "This run"), h("p", { class: "dim pre" }, state.run.headline.join("\n")),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  document.body.append(box);
  box.showModal();
}

// ---- pages ---------------------------------------------------------------------------------------

/** @param {"view" | "own" | "epoch"} why */
function show(why) {
  const listed = state.run.pages.find((one) => one.page === state.page);
  const known = PAGES[state.page] && (listed || UNLISTED.includes(state.page)) ? state.page : state.run.pages[0].page;
  if (known !== state.page) { state.page = known; history.replaceState(null, "", fragment(known, state.query)); }
  if (why !== "epoch") { tip(null); drawChips(); rail(); }
  metric.value = series()?.id || "";
  if (document.activeElement !== search) search.value = state.query.get("q") || "";
  if (!timeless()) {
    if (why === "view") stripPanel.ask(why);
    strip.settle();
  }
  if (shown !== known) {
    page?.close?.();
    shown = document.body.dataset.page = known;
    const host = $("main");
    host.replaceChildren();
    host.className = `page-${known}`;
    host.dataset.fresh = "1";
    host.scrollTop = 0;
    document.title = `${PAGES[known].title} · ${state.run.name} · Tare`;
    // Two parts of one run can always be compared.
    if (listed && !listed.has && known !== "diff") {
      page = { update: () => {} };
      answered();
      host.append(lacking(PAGES[known].title, listed.how));
      return;
    }
    page = PAGES[known].start(host);
    why = "view";
  }
  page?.update(why);
}

/** What a recording lacks, and how to record it. @param {string} title @param {string | null} how */
export function lacking(title, how) {
  const parts = (how || "This recording has nothing of it").split("`");
  return h("div", { class: "lacking" }, h("h2", null, `${title}: not in this recording`),
    h("p", null, ...parts.map((part, i) => (i % 2 ? h("code", null, part) : part)), "."),
    parts[1] ? button("Copy the command", () => copy(parts[1], "Command")) : null);
}

// ---- live ----------------------------------------------------------------------------------------

let heard = 0, aged = 0, lostAt = 0, tickState = "", sentence = "", losses = 0, stopped = false;

async function ticks() {
  while (!stopped) {
    try {
      const answer = await raw("/api/ticks"), reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
      const text = new TextDecoder();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += text.decode(value, { stream: true });
        for (let cut; (cut = rest.indexOf("\n\n")) >= 0; rest = rest.slice(cut + 2)) {
          const data = rest.slice(0, cut).split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
          if (data) tick(JSON.parse(data));
        }
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
    }
    lostAt ||= Date.now();
    drawAge();
    await new Promise((done) => setTimeout(done, 1000));
  }
}

/** @param {any} data */
function tick(data) {
  heard = Date.now();
  aged = data.age_ms || 0;
  if (lostAt) { lostAt = 0; toast("Tare answers again"); }
  tickState = data.state;
  sentence = data.sentence || "";
  losses = data.losses || 0;
  const grew = data.epoch !== state.epoch;
  state.epoch = data.epoch;
  if (data.duration_ns) state.duration = data.duration_ns;
  drawAge();
  heardExactly(data.exactly || null);
  if (grew) refresh();
  if (grew && !state.paused && !document.hidden) { stripPanel.ask("epoch"); show("epoch"); }
}

let refreshing = 0;

/** What is recorded may be more than before: a JVM that has just begun, or an engine that was switched on. */
async function refresh() {
  const fresh = Date.now() - switched() < 60000;
  if (state.run.source !== "live" || state.run.series.length && !fresh || Date.now() - refreshing < 2000) return;
  refreshing = Date.now();
  try {
    const run = await get("run"), had = JSON.stringify([state.run.series.map((one) => one.id), state.run.pages]);
    if (had === JSON.stringify([run.series.map((/** @type {any} */ one) => one.id), run.pages])) return;
    const lacked = !state.run.pages.find((one) => one.page === state.page)?.has;
    state.run = { ...run, source: state.run.source };
    head();
    if (lacked) shown = "";
    show("view");
  } catch { /* the head of the page says what is wrong */ }
}

function drawAge() {
  const live = state.run.source === "live" && tickState !== "ended", now = Date.now(), silent = heard && now - heard > (live ? 3500 : 25000);
  const old = (aged + (heard ? now - heard : 0)) / 1000;
  age.className = `age ${lostAt || silent ? "lost" : tickState === "ended" ? "ended" : live ? "live" : "file"}`;
  const how = losses ? ` · ${count(losses)} lost` : "";
  age.textContent = lostAt ? "no answer" : silent ? `silent for ${Math.round((now - heard) / 1000)} s` : tickState === "ended" ? `ended${how}`
    : live ? `${state.paused ? "paused" : "live"} · ${old < 10 ? old.toFixed(1) : Math.round(old)} s ago${how}` : timeless() ? "file" : `file · ${time(state.duration)}${how}`;
  age.dataset.age = String(Math.round(old * 1000));
  const since = new Date(lostAt || heard).toLocaleTimeString();
  say(lostAt ? `Tare has not answered since ${since}: its process has ended, or was stopped. What is on the page was loaded before. Start \`tare view\` again for more.`
    : silent ? `Nothing new from Tare since ${since}: the machine is very busy, or its process is stopped.` : sentence);
}

/** A sentence about the source, above the page. @param {string} text */
function say(text) {
  const box = $("say");
  box.dataset.sentence = text;
  if (box.textContent === text) return;
  box.textContent = text;
  box.hidden = !text;
}

// ---- keys ----------------------------------------------------------------------------------------

let going = 0;
/** @param {KeyboardEvent} event */
function key(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName || "") || document.querySelector("dialog[open]")) return;
  const after = Date.now() - going < 1500;
  going = 0;
  if (after) {
    const to = Object.entries(PAGES).find(([, one]) => one.key === event.key);
    if (to && state.run.pages.some((one) => one.page === to[0])) { event.preventDefault(); go(to[0]); }
    return;
  }
  if ((event.key === " " || event.key === "Enter") && /^(BUTTON|A)$/.test(target.tagName)) return;
  if (page?.key?.(event)) return event.preventDefault();
  const clear = () => {
    const last = [...state.query.keys()].filter((one) => one !== "metric" && (VIEW_KEYS.includes(one) || one === "q")).at(-1);
    if (last) set({ [last]: state.query.getAll(last).slice(0, -1) });
  };
  /** @type {Record<string, () => void>} */
  const keys = { "/": () => search.focus(), g: () => { going = Date.now(); }, "?": help, Escape: clear,
    y: () => copy(command(), "Command"), "[": () => jump(-1), "]": () => jump(1),
    " ": () => { if (state.run.source !== "live") return; state.paused = !state.paused; drawAge(); if (!state.paused) show("epoch"); } };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
}

/** @param {number} by */
const jump = (by) => strip.box.dispatchEvent(new KeyboardEvent("keydown", { key: by < 0 ? "ArrowLeft" : "ArrowRight" }));

// ---- the start -----------------------------------------------------------------------------------

/** @param {string} title @param {string} text @param {string | null} [remedy] */
function stop(title, text, remedy) {
  stopped = true;
  say("");
  page?.close?.();
  page = null;
  $("strip").hidden = $("rail").hidden = true;
  $("bar").replaceChildren(h("span", { class: "brand" }, "tare"));
  document.body.dataset.page = "stopped";
  $("main").className = "";
  answered();
  $("main").replaceChildren(h("div", { class: "lacking", role: "alert" }, h("h2", null, title), h("p", null, text), remedy ? h("p", { class: "dim" }, remedy) : null));
}

async function start() {
  theme();
  hooks.lost = () => {
    const remedy = "Open the link that `tare view` printed in its terminal; Enter there prints a new one.";
    if (!shown) return stop("This server does not know this page", "It was started again since, or the page belongs to another one.", remedy);
    // What is on the page stays, to be read.
    stopped = true;
    age.className = "age lost";
    age.textContent = "another server";
    say(`This server was started again and does not know this page, which shows what was loaded before. ${remedy}`);
  };
  // A new link that is opened in this tab changes the fragment only.
  addEventListener("hashchange", () => { if (location.hash.startsWith("#c=")) location.reload(); });
  let hash = location.hash;
  const code = /^#c=([^&]*)&?(.*)$/.exec(hash);
  if (code) {
    hash = code[2] ? `#${code[2]}` : "#/overview";
    history.replaceState(null, "", hash);
    try {
      await login(decodeURIComponent(code[1]));
    } catch (error) {
      const known = error instanceof ApiError ? error : null;
      if (!hasToken() || known?.status !== 410) {
        return stop("This link does not open the page", known?.message || "Tare does not answer.", known?.remedy ||
          "Press Enter in the terminal of `tare view`: it prints a new link.");
      }
    }
  }
  if (!hasToken()) return stop("The page needs its link", "A one-time link opens it, so that nobody else on this machine can read along.", "`tare view` printed the link in its terminal; Enter there prints a new one.");
  try {
    state.run = await get("run");
  } catch (error) {
    if (!stopped) stop("Tare does not answer", error instanceof Error ? error.message : String(error), error instanceof ApiError ? error.remedy : null);
    return;
  }
  state.duration = state.run.duration_ns;
  state.epoch = state.run.epoch;
  read(location.hash);
  head();
  $("strip").hidden = timeless();
  strip = new Strip($("strip"), () => stripPanel.ask());
  stripPanel = new Panel($("strip"), (signal) => {
    const query = view({ cells: Math.min(1000, Math.max(50, Math.floor(strip.box.clientWidth / 2))) });
    query.delete("time");
    return get("timeline", query, signal);
  }, (line) => { strip.show(line); });
  // A filter that is refused is told by the page; here there is room for a line.
  stripPanel.fail = (error) => strip.lack(error instanceof Error ? error.message : String(error));
  onChange((own) => show(own ? "own" : "view"));
  for (const kind of ["popstate", "hashchange"]) {
    addEventListener(kind, () => { if (!location.hash.startsWith("#c=")) changed(false); });
  }
  addEventListener("keydown", key);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && state.run.source === "live" && !stopped) show("epoch"); });
  // Paper is white.
  addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; looks(); });
  addEventListener("afterprint", theme);
  $("skip").addEventListener("click", (event) => { event.preventDefault(); $("main").focus(); });
  show("view");
  setInterval(() => { if (!stopped) drawAge(); }, 500);
  ticks();
}

/** @type {any} */ (window).tare = { idle, at: () => null, flame: () => null, amount };
start();
