// The time line, lane by lane over one axis, and the threads.

import { button, colour, h, meter, sized, spark, tip } from "./dom.js";
import { Panel, get } from "./api.js";
import { amount, count, moment, percent, span, ticks, time } from "./figures.js";
import { go, series, set, state, view } from "./state.js";
import { Grid, table } from "./grid.js";
import { brushing, drawLane, metricName, tellLane, unit } from "./lanes.js";

/** @typedef {import("./lanes.js").Timeline} Timeline */

const TALL = { area: 84, steps: 64, bars: 30 };
const THREAD = 22, AXIS = 22;

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function timelinePage(host) {
  const names = h("div", { class: "lane-names", "aria-hidden": "true" }), canvas = h("canvas", { role: "img", "aria-label": "Time line; the longest bars of each lane are listed below" });
  const stage = h("div", { class: "lane-stage" }, canvas, h("div", { class: "lane-line", hidden: true })), lists = h("div", { class: "lane-lists" });
  const note = h("p", { class: "dim", hidden: true }), more = button("All threads", () => { every = !every; more.textContent = every ? "The busiest 20" : "All threads"; panel.ask(); });
  const where = h("output", { class: "dim" });
  host.append(h("div", { class: "tools" }, h("h2", null, "Timeline"), where, h("div", { class: "buttons" },
    button("−", () => zoom(2, 0.5), { title: "Show more of the run (−)", "aria-label": "Show more of the run" }), button("+", () => zoom(0.5, 0.5), { title: "Show less, larger (+)", "aria-label": "Show less, larger" }),
    button("Whole run", () => range(null), { title: "0" }), more)), note,
  h("div", { class: "lanes" }, names, stage), lists);
  let every = false, drag = { from: -1, to: -1 };
  /** @type {{from: number, to: number} | null} */
  let part = null;
  /** @type {Timeline | null} */
  let line = null;
  const mark = /** @type {HTMLElement} */ (stage.querySelector(".lane-line"));
  const now = () => part || { from: 0, to: line?.to || state.duration || 1 };
  const panel = new Panel(stage, (signal) => {
    const query = view({ cells: Math.min(4000, Math.max(60, Math.floor(stage.clientWidth / 2))), threads: every ? "all" : "20",
      from: part ? Math.round(part.from) : null, to: part ? Math.round(part.to) : null });
    query.delete("time");
    return get("timeline", query, signal);
  }, (answer) => {
    line = answer;
    for (const lane of answer.lanes) if (lane.id === "metric") lane.name = metricName();
    note.hidden = !answer.no_times && !answer.states;
    note.replaceChildren(answer.no_times || "", ...(answer.states || []).map((/** @type {string} */ one) => {
      const patch = h("i", { class: "patch" });
      patch.style.background = colour(stateColour(one));
      return h("span", { class: "state" }, patch, one);
    }));
    draw();
    list();
  });
  const range = (/** @type {{from: number, to: number} | null} */ next) => {
    part = next && next.to - next.from < state.duration * 0.999 ? next : null;
    draw();
    clearTimeout(later);
    later = setTimeout(() => panel.ask(), 120);
  };
  let later = 0;
  const zoom = (/** @type {number} */ by, /** @type {number} */ at) => {
    const { from, to } = now(), point = from + (to - from) * at, wide = Math.min(state.duration, Math.max(1e5, (to - from) * by));
    const start = Math.max(0, Math.min(state.duration - wide, point - wide * at));
    range({ from: start, to: start + wide });
  };
  const tops = () => {
    let y = AXIS;
    const out = [];
    for (const lane of line?.lanes || []) { out.push({ lane, thread: null, y, tall: TALL[lane.kind] || 40 }); y += (TALL[lane.kind] || 40) + 8; }
    for (const thread of line?.threads || []) { out.push({ lane: null, thread, y, tall: THREAD - 4 }); y += THREAD; }
    return { out, y };
  };
  function draw() {
    const wide = stage.clientWidth, { out, y: tall } = tops();
    if (!wide || !line) return;
    const pen = sized(canvas, wide, tall), { from, to } = now();
    stage.style.height = names.style.height = `${tall}px`;
    const step = ticks(from, to, wide / 100);
    pen.font = "11px system-ui, sans-serif";
    for (const at of step.at) {
      const x = (at - from) / (to - from) * wide;
      pen.fillStyle = colour("line");
      pen.fillRect(Math.round(x), 0, 1, tall);
      pen.fillStyle = colour("dim");
      if (x < wide - 30) pen.fillText(moment(at, step.step), x + 4, 13);
    }
    // What came is drawn where it belongs, although the window may have moved since.
    const scale = wide / (to - from), left = (line.from - from) * scale, width = (line.to - line.from) * scale;
    for (const { lane, thread, y, tall } of out) {
      pen.save();
      pen.beginPath();
      pen.rect(0, y, wide, tall);
      pen.clip();
      pen.fillStyle = colour("panel");
      pen.fillRect(0, y, wide, tall);
      if (thread?.states && line.states) drawStates(pen, thread.states, line.states, left, width, y, tall);
      else if (lane && lane.kind !== "area") drawLane(pen, lane, from, to, y, wide, tall);
      else {
        pen.translate(left, 0);
        drawLane(pen, lane || { id: "thread", name: "", kind: "area", unit: "", values: thread?.values || [] }, line.from, line.to, y, width, tall);
      }
      pen.restore();
    }
    names.replaceChildren(...out.map(({ lane, thread, y, tall }) => {
      const top = lane?.values ? Math.max(...lane.values) : lane?.points?.length ? Math.max(...lane.points.map(([, v]) => v)) : 0;
      const label = h("div", { class: thread ? "lane-name thread" : "lane-name" },
        thread ? button(thread.name, () => set({ thread: thread.name }), { class: "link name", title: `Only ${thread.name}` }) : h("b", null, lane?.name || ""),
        lane && top && tall > 40 ? h("small", { class: "dim" }, lane.values ? `up to ${lane.unit === "ns" && line ? `${(top / line.cell_ns).toFixed(top > line.cell_ns * 9.99 ? 0 : 2)} ${lane.id === "metric" && /cpu/.test(series()?.kind || "") || /compil/i.test(lane.name) ? "processors" : "threads"}` : `${amount(top, lane.unit)} in ${time(line?.cell_ns || 1)}`}` : `up to ${amount(top, lane.unit)}`)
          : lane?.bars && tall < 40 ? h("small", { class: "dim" }, count(lane.bars.length)) : "");
      label.style.top = `${y}px`;
      label.style.height = `${tall}px`;
      return label;
    }));
    const chosen = drag.from >= 0 ? drag : span(state.query.get("time"), state.duration);
    if (chosen) {
      pen.fillStyle = colour("veil");
      const a = (chosen.from - from) * scale, b = (chosen.to - from) * scale;
      pen.fillRect(0, AXIS, a, tall);
      pen.fillRect(b, AXIS, wide - b, tall);
    }
    where.textContent = part ? `${moment(from, (to - from) / 1000)} to ${moment(to, (to - from) / 1000)}` : `whole run, ${time(state.duration)}`;
  }
  function list() {
    const out = (line?.lanes || []).filter((lane) => lane.bars?.length).map((lane) => {
      const bars = [...(lane.bars || [])].sort((a, b) => b.d - a.d).slice(0, 8);
      return h("section", { class: "block" }, h("h3", null, lane.name, h("small", { class: "dim" }, ` ${count(lane.bars?.length || 0)}, the longest first`)),
        table(lane.name, [
          { id: "t", title: "at", width: "", narrow: true, cell: (bar) => button(moment(bar.t), () => set({ time: `${moment(Math.max(0, bar.t - Math.max(bar.d * 4, 5e7)))}..${moment(bar.t + bar.d + Math.max(bar.d * 4, 5e7))}` }), { class: "link", title: "Show the time around it" }), value: (bar) => bar.t },
          { id: "d", title: "for", width: "", narrow: true, cell: (bar) => time(bar.d), value: (bar) => bar.d },
          { id: "name", title: "what", width: "", left: true, narrow: true, cell: (bar) => (bar.show ? h("a", { href: `#${bar.show}` }, bar.text) : bar.text) }], bars, (bar) => bar.name));
    });
    lists.replaceChildren(...out);
  }
  brushing(stage, now, (from, to) => { drag = { from, to }; draw(); });
  stage.addEventListener("pointermove", (event) => {
    const current = line;
    if (!current) return;
    const place = stage.getBoundingClientRect(), { from, to } = now(), x = event.clientX - place.left;
    const t = from + x / place.width * (to - from), y = event.clientY - place.top, near = (to - from) / place.width * 3;
    mark.hidden = false;
    mark.style.left = `${x}px`;
    const { out } = tops(), under = out.find((one) => one.thread && y >= one.y && y < one.y + THREAD);
    const said = current.lanes.flatMap((lane) => {
      const text = tellLane(lane, t, current, near);
      return text ? [h("div", null, h("span", { class: "dim" }, `${lane.name} `), text)] : [];
    });
    if (under?.thread) {
      const cell = Math.floor((t - current.from) / current.cell_ns), value = under.thread.values[cell] || 0;
      said.push(h("div", null, h("span", { class: "dim" }, `${under.thread.name} `), current.states?.[under.thread.states?.[cell] ?? -1] || amount(value, unit())));
    }
    tip([h("b", null, moment(t, (to - from) / 2000)), ...said], event.clientX, event.clientY);
  });
  stage.addEventListener("pointerleave", () => { mark.hidden = true; tip(null); });
  stage.addEventListener("wheel", (event) => {
    if (event.shiftKey) {
      const { from, to } = now(), by = (event.deltaY || event.deltaX) / 600 * (to - from), start = Math.max(0, Math.min(state.duration - (to - from), from + by));
      range({ from: start, to: start + to - from });
    } else if (event.ctrlKey) {
      const place = stage.getBoundingClientRect();
      zoom(Math.exp(event.deltaY / 250), (event.clientX - place.left) / place.width);
    } else return;
    event.preventDefault();
  }, { passive: false });
  const watch = new ResizeObserver(draw);
  watch.observe(stage);
  return {
    update(why) {
      drag = { from: -1, to: -1 };
      draw();
      panel.ask(why === "epoch" ? "epoch" : "view");
    },
    key(event) {
      if (event.key === "0") return range(null), true;
      if (event.key === "+") return zoom(0.5, 0.5), true;
      if (event.key === "-") return zoom(2, 0.5), true;
      return false;
    },
    look: () => { draw(); for (const patch of /** @type {HTMLElement[]} */ ([...note.querySelectorAll("i")])) patch.style.background = colour(stateColour(patch.parentElement?.textContent || "")); },
    close: () => { panel.stop(); watch.disconnect(); clearTimeout(later); },
  };
}

/** @typedef {{name: string, kind: string, java_id: number | null, os_id: number | null, value: number, started_ns: number | null, ended_ns: number | null, aside: boolean, top: {name: string, self: number} | null, values?: number[], many?: number}} Thread */

/** The style sheet's colour of a thread's state: work, contention, input and output, rest. @param {string} name */
const stateColour = (name) => (name === "running" ? "good" : name === "runnable" ? "gc" : /block|contend|enter/.test(name) ? "lock" : /system/.test(name) ? "steps" : "strong");

/** @param {CanvasRenderingContext2D} pen @param {number[]} states @param {string[]} names @param {number} left @param {number} width @param {number} y @param {number} tall */
function drawStates(pen, states, names, left, width, y, tall) {
  const cell = width / states.length;
  for (let i = 0; i < states.length;) {
    let end = i + 1;
    while (end < states.length && states[end] === states[i]) end++;
    if (states[i] >= 0) {
      // Rest is low, so that work stands out without its colour, too.
      const tone = stateColour(names[states[i]]), high = tone === "strong" ? tall / 3 : tall;
      pen.fillStyle = colour(tone);
      pen.fillRect(left + i * cell, y + tall - high, Math.max(1, (end - i) * cell), high);
    }
    i = end;
  }
}

/** A pool's name: what its threads share. @param {string} name */
const pool = (name) => name.replace(/\d+(?=\D*$)/, "*");

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function threadsPage(host) {
  const main = h("div", { class: "graph" }), note = h("output", { class: "dim" });
  let folded = false, whole = 1;
  /** @type {Thread[]} */
  let all = [];
  const fold = button("Fold pools", () => { folded = !folded; fold.setAttribute("aria-pressed", String(folded)); show(); }, { "aria-pressed": "false", title: "Threads whose names differ in a number are one row" });
  host.append(h("div", { class: "tools" }, h("h2", null, "Threads"), note, h("div", { class: "buttons" }, fold)), h("div", { class: "split" }, main));
  const when = (/** @type {number | null} */ ns) => (ns === null || ns === undefined ? h("span", { class: "dim" }, "–") : moment(ns, 1e7));
  /** @type {Grid<Thread>} */
  const grid = new Grid(main, { label: "Threads", name: (row) => row.name, pale: (row) => row.aside,
    enter: (row) => go("flame", { thread: row.name, ...(row.aside ? { native: true } : {}), path: null }),
    columns: [
      { id: "value", title: "share", width: "136px", narrow: true, cell: (row) => meter(row.value / (whole || 1), percent(row.value, whole)), value: (row) => row.value },
      { id: "amount", title: "value", width: "90px", cell: (row) => amount(row.value, unit()), value: (row) => row.value },
      { id: "name", title: "thread", left: true, narrow: true, width: "minmax(130px, 1.1fr)", cell: (row) => h("span", { class: "name" }, button(row.name, () => go("flame", { thread: row.name, ...(row.aside ? { native: true } : {}), path: null }), { class: "link", tabindex: -1, title: `Flame graph of ${row.name}` }),
        row.many ? h("small", { class: "dim" }, ` ${row.many} threads`) : "") },
      { id: "kind", title: "kind", left: true, width: "64px", cell: (row) => h("span", { class: "dim" }, row.kind) },
      { id: "over", title: "over time", left: true, width: "170px", cell: (row) => (row.values ? spark(row.values, 160, 20, `${row.name} over time`) : "") },
      { id: "started", title: "from", width: "74px", cell: (row) => when(row.started_ns) },
      { id: "ended", title: "to", width: "74px", cell: (row) => when(row.ended_ns) },
      { id: "top", title: "most in", left: true, width: "minmax(120px, 1.4fr)", cell: (row) => h("span", { class: "name dim", title: row.top?.name }, row.top ? row.top.name : "–") },
    ] });
  const show = () => {
    /** @type {Thread[]} */
    let rows = all;
    if (folded) {
      /** @type {Map<string, Thread>} */
      const pools = new Map();
      for (const one of all) {
        const name = pool(one.name), have = pools.get(name);
        if (!have) { pools.set(name, { ...one, many: 1, values: one.values ? [...one.values] : undefined }); continue; }
        have.name = name;
        have.many = (have.many || 1) + 1;
        have.value += one.value;
        have.values = have.values?.map((value, i) => value + (one.values?.[i] || 0));
        have.started_ns = have.ended_ns = null;
        if ((one.top?.self || 0) > (have.top?.self || 0)) have.top = one.top;
      }
      rows = [...pools.values()].map((one) => ({ ...one, many: one.many === 1 ? 0 : one.many })).sort((a, b) => b.value - a.value);
    }
    grid.show(rows);
  };
  const panel = new Panel(main, (signal) => get("threads", view({ cells: 80 }), signal), (answer) => {
    whole = answer.total;
    const chosen = grid.chosen >= 0 ? grid.rows[grid.chosen]?.name : null;
    all = answer.threads;
    note.textContent = `${count(all.length)} threads${answer.idle ? ` · ${answer.idle}` : ""}`;
    show();
    if (chosen) { grid.chosen = grid.rows.findIndex((row) => row?.name === chosen); grid.draw(); }
  });
  return { update: (why) => { if (why !== "own") panel.ask(why); }, look: () => grid.draw(), close: () => { panel.stop(); grid.close(); } };
}
