// Lanes over one axis of time: the strip above every page, and the time line. Both let a part of
// the run be brushed, which filters every page.

import { colour, h, sized, tip } from "./dom.js";
import { amount, moment, span, spanText, ticks, time } from "./figures.js";
import { series, seriesName, set, state } from "./state.js";

/**
 * @typedef {{t: number, d: number, name: string, text: string, show: string | null}} Bar
 * @typedef {{id: string, name: string, kind: "area" | "steps" | "bars", unit: string, values?: number[], points?: [number, number][], bars?: Bar[]}} Lane
 * @typedef {{from: number, to: number, cell_ns: number, lanes: Lane[], threads?: {name: string, value: number, values: number[], states?: number[] | null}[], states?: string[] | null, no_times: string | null}} Timeline
 */

/** Draws one lane. @param {CanvasRenderingContext2D} pen @param {Lane} lane @param {number} from @param {number} to @param {number} y @param {number} wide @param {number} tall */
export function drawLane(pen, lane, from, to, y, wide, tall) {
  const x = (/** @type {number} */ t) => (t - from) / (to - from) * wide;
  if (lane.kind === "area" && lane.values) {
    const top = Math.max(1e-9, ...lane.values), cell = wide / lane.values.length;
    pen.fillStyle = colour("area");
    lane.values.forEach((value, i) => {
      const high = value > 0 ? Math.max(1, value / top * (tall - 2)) : 0;
      pen.fillRect(i * cell, y + tall - high, Math.max(cell + 0.3, 1), high);
    });
  } else if (lane.kind === "steps" && lane.points?.length) {
    const top = Math.max(1, ...lane.points.map(([, v]) => v));
    pen.strokeStyle = pen.fillStyle = colour("steps");
    pen.lineWidth = 1.5;
    pen.beginPath();
    let before = y + tall;
    lane.points.forEach(([t, v], i) => {
      const at = y + tall - 1 - v / top * (tall - 4);
      if (i === 0) pen.moveTo(x(t), at);
      else { pen.lineTo(x(t), before); pen.lineTo(x(t), at); }
      before = at;
    });
    pen.lineTo(wide, before);
    pen.stroke();
    pen.lineTo(wide, y + tall);
    pen.lineTo(x(lane.points[0][0]), y + tall);
    pen.globalAlpha = 0.16;
    pen.fill();
    pen.globalAlpha = 1;
  } else if (lane.bars) {
    pen.fillStyle = colour(lane.id === "gc" ? "gc" : lane.id === "locks" ? "lock" : "bar");
    for (const bar of lane.bars) {
      if (bar.t + bar.d < from || bar.t > to) continue;
      pen.fillRect(x(bar.t), y + 2, Math.max(1.5, bar.d / (to - from) * wide), tall - 4);
    }
  }
}

/** What a lane says at a moment. @param {Lane} lane @param {number} t @param {Timeline} line @param {number} [near] */
export function tellLane(lane, t, line, near = 0) {
  if (lane.values) {
    const i = Math.min(lane.values.length - 1, Math.floor((t - line.from) / line.cell_ns));
    return lane.values[i] ? `${amount(lane.values[i], lane.unit)} in ${time(line.cell_ns)}` : null;
  }
  if (lane.points) {
    let last = null;
    for (const [at, v] of lane.points) { if (at > t) break; last = v; }
    return last === null ? null : amount(last, lane.unit);
  }
  const bars = (lane.bars || []).filter((bar) => bar.t - near <= t && t <= bar.t + bar.d + near);
  const bar = bars.sort((a, b) => Math.abs(a.t - t) - Math.abs(b.t - t))[0];
  return bar ? `${bar.text}${bar.d ? `, ${time(bar.d)}` : ""} at ${moment(bar.t)}` : null;
}

/**
 * Lets a part of the axis be dragged.
 * @param {HTMLElement} box @param {() => {from: number, to: number}} range what the box shows
 * @param {(from: number, to: number) => void} [draft] while it is dragged
 */
export function brushing(box, range, draft) {
  let start = -1;
  const at = (/** @type {PointerEvent} */ event) => {
    const place = box.getBoundingClientRect(), { from, to } = range();
    const share = Math.max(0, Math.min(1, (event.clientX - place.left) / place.width));
    return from + share * (to - from);
  };
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = at(event);
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (start < 0) return;
    const end = at(event);
    draft?.(Math.min(start, end), Math.max(start, end));
  });
  const finish = (/** @type {PointerEvent} */ event) => {
    if (start < 0) return;
    const end = at(event), { from, to } = range(), least = (to - from) / (box.clientWidth || 1) * 4;
    const [a, b] = [Math.min(start, end), Math.max(start, end)];
    start = -1;
    if (b - a >= least) set({ time: spanText(a, b, (to - from) / 2000) });
    else draft?.(-1, -1);
  };
  box.addEventListener("pointerup", finish);
  box.addEventListener("pointercancel", () => { start = -1; draft?.(-1, -1); });
  box.addEventListener("dblclick", () => set({ time: null }));
}

/** Moves or widens the brushed part by keys. @param {KeyboardEvent} event */
export function brushKey(event) {
  const whole = state.duration, now = span(state.query.get("time"), whole);
  const step = whole / 50, edge = whole / 5;
  let { from, to } = now || { from: 0, to: whole };
  if (event.key === "Escape" && now) return set({ time: null }), true;
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return false;
  const by = event.key === "ArrowLeft" ? -step : step;
  if (!now) [from, to] = by > 0 ? [0, edge] : [whole - edge, whole];
  else if (event.shiftKey) to = Math.min(whole, Math.max(from + step, to + by));
  else {
    const move = Math.max(-from, Math.min(whole - to, by));
    from += move;
    to += move;
  }
  set({ time: spanText(from, to, whole / 2000) });
  return true;
}

/** The strip: the whole run, 48 pixels high. */
export class Strip {
  /** @param {HTMLElement} host @param {() => void} resized */
  constructor(host, resized) {
    this.resized = resized;
    this.asked = 0;
    this.canvas = h("canvas");
    this.note = h("p", { class: "strip-note", hidden: true });
    this.box = h("div", { class: "strip-box", tabindex: 0, role: "slider", "aria-orientation": "horizontal",
      "aria-label": "Time filter: arrows move the part that is shown, Shift with arrows widens it, Escape shows the whole run",
      "aria-valuemin": 0 }, this.canvas, this.note);
    host.append(this.box);
    /** @type {Timeline | null} */
    this.line = null;
    this.draft = { from: -1, to: -1 };
    const range = () => ({ from: this.line?.from ?? 0, to: this.line?.to || state.duration || 1 });
    brushing(this.box, range, (from, to) => { this.draft = { from, to }; this.draw(); });
    this.box.addEventListener("keydown", (event) => {
      if (brushKey(event)) { event.preventDefault(); event.stopPropagation(); }
    });
    this.box.addEventListener("pointermove", (event) => {
      if (!this.line) return;
      const place = this.box.getBoundingClientRect(), { from, to } = range();
      const t = from + (event.clientX - place.left) / place.width * (to - from), near = (to - from) / place.width * 3;
      const line = this.line, said = line.lanes.flatMap((lane) => {
        const text = tellLane(lane, t, line, near);
        return text ? [h("div", null, h("span", { class: "dim" }, `${lane.name} `), text)] : [];
      });
      tip([h("b", null, moment(t, (to - from) / 1000)), ...said], event.clientX, event.clientY);
    });
    this.box.addEventListener("pointerleave", () => tip(null));
    new ResizeObserver(() => {
      this.draw();
      const wide = this.box.clientWidth;
      if (this.line && Math.abs(wide - this.asked) > this.asked / 4) { this.asked = wide; this.resized(); }
    }).observe(this.box);
  }

  /** @param {Timeline} line */
  show(line) {
    this.line = line;
    this.asked = this.box.clientWidth;
    if (line.lanes[0]?.id === "metric") line.lanes[0].name = metricName();
    this.note.hidden = !line.no_times;
    this.note.textContent = line.no_times;
    this.draw();
  }

  /** Nothing to draw, and why. @param {string} text */
  lack(text) {
    this.line = null;
    this.note.hidden = false;
    this.note.textContent = text;
    this.draw();
  }

  draw() {
    const wide = this.box.clientWidth, tall = 48, line = this.line;
    if (!wide) return;
    const pen = sized(this.canvas, wide, tall);
    if (!line) return;
    const { from, to } = line;
    const main = line.lanes.find((lane) => lane.kind === "area");
    if (main) drawLane(pen, main, from, to, 0, wide, tall - 13);
    for (const lane of line.lanes) if (lane.id === "gc") drawLane(pen, lane, from, to, tall - 22, wide, 11);
    pen.font = "10px system-ui, sans-serif";
    pen.fillStyle = colour("dim");
    for (const at of ticks(from, to, wide / 90).at) {
      const x = (at - from) / (to - from) * wide;
      pen.fillRect(x, tall - 12, 1, 3);
      if (x < wide - 24) pen.fillText(moment(at), x + 3, tall - 2);
    }
    const now = this.draft.from >= 0 ? this.draft : span(state.query.get("time"), to);
    this.box.setAttribute("aria-valuemax", String(Math.round(to / 1e6)));
    this.box.setAttribute("aria-valuenow", String(Math.round((now?.from ?? 0) / 1e6)));
    this.box.setAttribute("aria-valuetext", now ? `${moment(now.from)} to ${moment(now.to)}` : "the whole run");
    if (!now) return;
    const a = (now.from - from) / (to - from) * wide, b = (now.to - from) / (to - from) * wide;
    pen.fillStyle = colour("veil");
    pen.fillRect(0, 0, a, tall);
    pen.fillRect(b, 0, wide - b, tall);
    pen.fillStyle = colour("accent");
    pen.fillRect(a - 1, 0, 2, tall);
    pen.fillRect(b - 1, 0, 2, tall);
  }

  settle() { this.draft = { from: -1, to: -1 }; this.draw(); }
}

/** What the lane of the chosen figures is called. */
export const metricName = () => { const one = series(); return one ? seriesName(one) : ""; };

/** The unit of what is shown. */
export const unit = () => series()?.unit || "count";
