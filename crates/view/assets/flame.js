// The flame graph: draws what an answer holds, one row of pixels per stack row, copied down; so
// hundreds of thousands of frames take a few milliseconds. It asks for more through `ask`, knows no
// server and no page around it, and is the program of the exported page as well.

import { changeColour, css, frameColour, mix } from "./palette.js";

const ROW = 20, FONT = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";

/**
 * One answer, as columns. A node begins at `left`, in units of the value.
 * @typedef {object} Answer
 * @property {any} head
 * @property {number} count
 * @property {Int32Array} parent
 * @property {Int32Array} label
 * @property {Float64Array} left
 * @property {Float64Array} width
 * @property {Float64Array} node
 * @property {Uint8Array} hit
 * @property {Float64Array | null} value    where it is not the width
 * @property {Float64Array | null} old
 * @property {Float64Array | null} fresh
 * @property {number[]} rows    the first node of each row, and the end
 *
 * @typedef {{width: number, rows: number, node?: number, tree?: string, path?: string | null, from?: number, to?: number}} Question
 *
 * @typedef {object} Options
 * @property {(question: Question, signal: AbortSignal) => Promise<Answer>} ask
 * @property {(answer: Answer, i: number) => void} [selected]   a frame was chosen, or moved to
 * @property {(answer: Answer) => void} [answered]              the graph shows another answer
 * @property {(answer: Answer, i: number, x: number, y: number) => void} [hovered]   -1: nothing
 * @property {(answer: Answer, i: number, x: number, y: number) => void} [menu]
 * @property {boolean} [upside]     the root at the bottom
 * @property {boolean} [bare]    without the row of the root
 * @property {boolean} [fit]        as high as its rows, up to `most` pixels
 * @property {number} [most]
 * @property {string} label         what a screen reader calls it
 */

/** @param {ArrayBuffer} buffer @returns {Answer} */
export function decode(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const count = head.count;
  /** @type {Record<string, Float64Array>} */
  const columns = {};
  let at = 4 + size;
  for (const [name, length] of head.columns) {
    const from = new Uint8Array(buffer, at, length), out = new Float64Array(count);
    for (let i = 0, b = 0; i < count; i++) {
      let value = 0, factor = 1, byte;
      do { byte = from[b++]; value += (byte & 127) * factor; factor *= 128; } while (byte > 127);
      out[i] = value;
    }
    columns[name] = out;
    at += length;
  }
  const unzigzag = (/** @type {number} */ v) => (v % 2 ? -(v + 1) / 2 : v / 2);
  const parent = new Int32Array(count), label = Int32Array.from(columns.label);
  const width = columns.width, node = new Float64Array(count);
  const left = columns.left || new Float64Array(count);
  /** @type {Float64Array | null} */
  const value = columns.value ? new Float64Array(count) : null;
  const rows = [0], depth = new Int32Array(count), next = new Float64Array(count);
  for (let i = 0, before = 0, number = 0; i < count; i++) {
    parent[i] = before += columns.parent[i];
    node[i] = number += unzigzag(columns.node[i]);
    if (value) value[i] = width[i] + unzigzag(columns.value[i]);
    if (i === 0) {
      if (!columns.left) left[0] = head.offset || 0;
    } else {
      const up = parent[i];
      depth[i] = depth[up] + 1;
      if (!columns.left) { left[i] = next[up]; next[up] += width[i]; }
      if (depth[i] > depth[i - 1]) rows.push(i);
    }
    next[i] = left[i];
  }
  rows.push(count);
  return { head, count, parent, label, left, width, node, value, rows,
    hit: columns.hit ? Uint8Array.from(columns.hit) : new Uint8Array(0),
    old: columns.old || null, fresh: columns.new || null };
}

/** The longest form of a name that fits into `room` letters. @param {string} name @param {string} kind @param {number} room */
export function fitted(name, kind, room) {
  if (room < 3) return "";
  if (name.length <= room) return name;
  if ("jidcg".includes(kind)) {
    const parts = name.split("(")[0].split(".");
    for (const keep of kind === "c" ? [1] : [2, 1]) {
      const part = parts.slice(-keep).join(".");
      if (part.length <= room) return part;
    }
    return `${parts[parts.length - 1].slice(0, room - 1)}…`;
  }
  return `${name.slice(0, room - 1)}…`;
}

/** The node of another answer that is called by the same names, or -1. @param {Answer} old @param {number} i @param {Answer} fresh */
function follow(old, i, fresh) {
  const names = [];
  for (; i > 0; i = old.parent[i]) names.unshift(old.head.labels[old.label[i]]);
  let at = 0;
  names.forEach((name, row) => {
    const begin = fresh.rows[row + 1] ?? 0, end = fresh.rows[row + 2] ?? 0;
    let next = -1;
    for (let k = begin; name && at >= 0 && k < end && next < 0; k++) {
      if (fresh.parent[k] === at && fresh.head.labels[fresh.label[k]] === name) next = k;
    }
    at = next;
  });
  return at;
}

export class Flame {
  /** @param {HTMLElement} host @param {Options} options */
  constructor(host, options) {
    this.host = host;
    this.options = options;
    host.classList.add("flame");
    host.tabIndex = 0;
    host.setAttribute("role", "group");
    host.setAttribute("aria-roledescription", "flame graph");
    host.setAttribute("aria-label", options.label);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    host.append(this.canvas, this.spacer);
    this.pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    /** @type {Answer | null} */
    this.answer = null;
    /** @type {Question} */
    this.at = { width: 1, rows: 200 };
    /** The part of the zoomed node that the window shows. */
    this.from = 0;
    this.to = 1;
    this.hover = -1;
    this.chosen = -1;
    /** @type {AbortController | null} */
    this.flight = null;
    /** @type {Uint32Array} */
    this.colours = new Uint32Array(0);
    /** @type {Map<string, number>} */
    this.known = new Map();
    this.upside = options.upside || false;
    this.frame = 0;
    /** The root is to be in sight. */
    this.home = true;
    this.slow = 0;
    this.asked = 0;
    this.wide = 0;
    /** @type {ImageData | null} what was painted last, to be painted over */
    this.image = null;
    /** @type {{x: number, from: number, to: number, moved: boolean} | null} */
    this.pan = null;
    this.dark = false;
    this.listen();
  }

  listen() {
    const { host, canvas } = this;
    this.watch = new ResizeObserver(() => {
      if (!host.clientWidth) return;
      this.soon();
      if (this.answer && Math.abs(host.clientWidth - this.asked) > 40) this.later();
    });
    this.watch.observe(host);
    host.addEventListener("scroll", () => this.soon());
    canvas.addEventListener("pointermove", (event) => {
      if (this.pan && event.buttons & 1) return this.panTo(event);
      const i = this.find(event.clientX, event.clientY);
      if (i !== this.hover) { this.hover = i; this.soon(); }
      if (this.answer) this.options.hovered?.(this.answer, i, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => {
      this.hover = -1;
      if (this.answer) this.options.hovered?.(this.answer, -1, 0, 0);
      this.soon();
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      host.focus({ preventScroll: true });
      this.pan = { x: event.clientX, from: this.from, to: this.to, moved: false };
    });
    canvas.addEventListener("pointerup", () => setTimeout(() => { this.pan = null; }));
    canvas.addEventListener("click", (event) => {
      const moved = this.pan?.moved;
      this.pan = null;
      if (moved || !this.answer) return;
      const i = this.find(event.clientX, event.clientY);
      if (i >= 0) this.zoom(i);
    });
    canvas.addEventListener("contextmenu", (event) => {
      const i = this.find(event.clientX, event.clientY);
      if (i < 0 || !this.answer || !this.options.menu) return;
      event.preventDefault();
      this.choose(i);
      this.options.menu(this.answer, i, event.clientX, event.clientY);
    });
    host.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const span = this.to - this.from, step = (event.deltaY || event.deltaX) / 400;
      if (event.shiftKey) return this.window(this.from + step * span, this.to + step * span);
      const place = canvas.getBoundingClientRect();
      const point = this.from + span * (event.clientX - place.left) / place.width;
      const by = Math.exp(step * 2);
      this.window(point - (point - this.from) * by, point + (this.to - point) * by);
    }, { passive: false });
  }

  /** @param {PointerEvent} event */
  panTo(event) {
    const pan = this.pan;
    if (!pan || pan.to - pan.from >= 1) return;
    const by = (pan.x - event.clientX) / this.canvas.clientWidth * (pan.to - pan.from);
    if (Math.abs(event.clientX - pan.x) > 3) pan.moved = true;
    if (pan.moved) this.window(pan.from + by, pan.to + by);
  }

  /** Shows another part of the zoomed node's width. @param {number} from @param {number} to */
  window(from, to) {
    const span = Math.min(1, Math.max(1e-6, to - from));
    this.from = Math.max(0, Math.min(1 - span, from));
    this.to = this.from + span;
    this.soon();
    const head = this.answer?.head;
    if (!head) return;
    const have = (head.to ?? 1) - (head.from ?? 0);
    if (this.from < (head.from ?? 0) - 1e-9 || this.to > (head.to ?? 1) + 1e-9 || span < have / 4) this.later();
  }

  later() {
    clearTimeout(this.slow);
    this.host.dataset.loading = "1";
    this.slow = setTimeout(() => this.load().catch(() => {}), 90);
  }

  /** Asks for a node, or for the root. @param {{node?: number, tree?: string, path?: string | null}} to */
  async show(to) {
    this.at = { width: 1, rows: 200, ...to };
    this.from = 0;
    this.to = 1;
    this.home = true;
    await this.load();
  }

  /** Asks again for what is shown, such as after new data, by its lasting name. */
  async again() {
    const head = this.answer?.head;
    if (head?.path) this.at = { width: 1, rows: 200, path: head.path };
    await this.load();
  }

  async load() {
    this.flight?.abort();
    const flight = this.flight = new AbortController();
    this.host.dataset.loading = "1";
    this.asked = this.host.clientWidth;
    const span = this.to - this.from, whole = span >= 0.999;
    // Three windows' width, so that moving a little asks nothing.
    const from = whole ? 0 : Math.max(0, this.from - span), to = whole ? 1 : Math.min(1, this.to + span);
    const pixels = Math.max(50, (this.asked || 800) * (devicePixelRatio || 1));
    try {
      const answer = await this.options.ask({ ...this.at, from, to,
        width: Math.round(pixels * (to - from) / span) }, flight.signal);
      if (this.flight !== flight) return;
      const old = this.answer, was = this.chosen;
      this.chosen = -1;
      if (old && was >= 0) {
        // The same node again, if it is still here.
        this.chosen = old.head.tree === answer.head.tree ? answer.node.indexOf(old.node[was])
          : old.head.path === answer.head.path ? follow(old, was, answer) : -1;
      }
      this.answer = answer;
      this.hover = -1;
      this.recolour();
      this.options.answered?.(answer);
      this.soon();
    } finally {
      if (this.flight === flight) {
        this.flight = null;
        delete this.host.dataset.loading;
      }
    }
  }

  /** Zooms to a frame; from the first row, out by one. @param {number} i */
  zoom(i) {
    const answer = this.answer;
    if (!answer || answer.label[i] === 0) return;
    this.chosen = i;
    this.options.hovered?.(answer, -1, 0, 0);
    this.options.selected?.(answer, i);
    if (i > 0) this.show({ node: answer.node[i], tree: answer.head.tree }).catch(() => {});
    else this.out();
  }

  /** @param {number} i */
  choose(i) {
    this.chosen = i;
    if (this.answer) this.options.selected?.(this.answer, i);
    const row = this.depth(i), y = this.top(row), room = this.host.clientHeight;
    if (y < 0 || y > room - ROW) this.host.scrollTop += y - room / 2;
    this.soon();
  }

  /** @param {number} i */
  depth(i) {
    const rows = this.answer?.rows || [0];
    let low = 0, high = rows.length - 1;
    while (high - low > 1) { const mid = low + high >> 1; if (rows[mid] <= i) low = mid; else high = mid; }
    return low;
  }

  /** The first row that is drawn, and how many there are. */
  get first() { return this.options.bare && this.shownRows > 1 ? 1 : 0; }
  get shownRows() { return (this.answer?.rows.length || 1) - 1; }
  get tallness() { return (this.shownRows - this.first) * ROW; }

  /** The upper edge of a row in the canvas, in CSS pixels. @param {number} row */
  top(row) {
    const y = this.upside ? (this.shownRows - 1 - row) * ROW : (row - this.first) * ROW;
    return y + this.shift - this.host.scrollTop;
  }

  /** A graph whose root is at the bottom stands on the lower edge. */
  get shift() {
    return this.upside ? Math.max(0, this.host.clientHeight - this.tallness) : 0;
  }

  /** The frame at a point of the window, or -1. @param {number} x @param {number} y */
  find(x, y) {
    const answer = this.answer;
    if (!answer || !answer.count) return -1;
    const box = this.canvas.getBoundingClientRect();
    if (x < box.left || x >= box.right || y < box.top || y >= box.bottom) return -1;
    const all = answer.rows.length - 1;
    let row = Math.floor((y - box.top + this.host.scrollTop - this.shift) / ROW);
    row = this.upside ? all - 1 - row : row + this.first;
    if (row < this.first || row >= all) return -1;
    const at = (this.from + (this.to - this.from) * (x - box.left) / box.width) * answer.head.width;
    let low = answer.rows[row], high = answer.rows[row + 1];
    const end = low;
    while (low < high) { const mid = low + high >> 1; if (answer.left[mid] <= at) low = mid + 1; else high = mid; }
    const i = low - 1;
    return i >= end && at < answer.left[i] + answer.width[i] ? i : -1;
  }

  /** @param {number} i */
  text(i) {
    const answer = this.answer;
    return answer ? answer.head.labels[answer.label[i]] ?? null : null;
  }

  /** @param {number} i */
  total(i) { return this.answer ? (this.answer.value || this.answer.width)[i] : 0; }

  /** The place of a frame in the window. @param {number} i */
  rect(i) {
    const answer = /** @type {Answer} */ (this.answer), box = this.canvas.getBoundingClientRect();
    const scale = box.width / ((this.to - this.from) * answer.head.width);
    const x = box.left + (answer.left[i] - this.from * answer.head.width) * scale;
    return { x, y: box.top + this.top(this.depth(i)), width: answer.width[i] * scale, height: ROW - 1 };
  }

  /** Colours anew, after another theme or another answer. */
  recolour() {
    const answer = this.answer, [r, g, b] = (getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) || [255, 255, 255]).map(Number);
    // By what is behind it, which is right for forced colours, too.
    const dark = r * 0.3 + g * 0.6 + b * 0.1 < 128;
    if (dark !== this.dark) { this.dark = dark; this.known.clear(); }
    if (!answer) return;
    const { labels, kinds } = answer.head;
    this.colours = new Uint32Array(labels.length);
    for (let i = 0; i < labels.length; i++) {
      const key = `${kinds[i]}${labels[i] ?? ""}`;
      let colour = this.known.get(key);
      if (colour === undefined) this.known.set(key, colour = frameColour(kinds[i] || "s", labels[i], dark));
      this.colours[i] = colour;
    }
    this.soon();
  }

  goHome() { this.home = true; this.soon(); }

  soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
  }

  /** How a frame is coloured: of two recordings by its change, unless that may be chance. @param {Answer} answer @param {number} i */
  tint(answer, i) {
    const { old, fresh, label, head } = answer;
    if (!old || !fresh) return this.colours[label[i]];
    const [before, after] = head.wholes, was = before ? old[i] / before : 0, is = after ? fresh[i] / after : 0, by = is - was;
    const [one, two, most] = head.scatter || [0, 0, 0], chance = most * Math.sqrt(one * was / before + two * is / after);
    return changeColour(!label[i] || Math.abs(by) <= chance ? 0 : by / Math.max(was, is, 1e-12), this.dark);
  }

  paint() {
    const answer = this.answer, { host, canvas, pen } = this;
    const ratio = devicePixelRatio || 1;
    if (!host.clientWidth) return;
    const rows = answer ? answer.rows.length - 1 : 0;
    if (this.options.fit) host.style.height = `${Math.min(this.options.most || 400, Math.max(ROW, this.tallness) + 2)}px`;
    const wide = host.clientWidth, tall = host.clientHeight;
    const w = Math.round(wide * ratio), t = Math.max(1, Math.round(tall * ratio));
    if (canvas.width !== w || canvas.height !== t) { canvas.width = w; canvas.height = t; }
    canvas.style.height = `${tall}px`;
    this.spacer.style.height = `${Math.max(0, this.tallness - tall)}px`;
    if (this.home && answer && !this.flight) { this.home = false; host.scrollTop = this.upside ? host.scrollHeight : 0; }
    const back = this.dark ? 0xff191714 : 0xffffffff;
    if (this.image?.width !== w || this.image.height !== t) this.image = pen.createImageData(w, t);
    const image = this.image, pixels = new Uint32Array(image.data.buffer);
    pixels.fill(back);
    if (!answer || !answer.count) { pen.putImageData(image, 0, 0); return; }
    const searching = answer.hit.length > 0, high = Math.round(ROW * ratio);
    const scale = w / ((this.to - this.from) * answer.head.width), begin = this.from * answer.head.width;
    const { left, width, label, hit } = answer;
    /** @type {[number, number, number, number][]} */
    const written = [];
    const line = new Uint32Array(w), letter = this.letter(), least = 3 * letter * ratio;
    for (let row = this.first; row < rows; row++) {
      const y = Math.round(this.top(row) * ratio);
      if (y + high <= 0 || y >= t) continue;
      line.fill(back);
      let last = -1, widest = 0, any = false;
      // The first that reaches into the window; those of a row stand from left to right.
      let low = answer.rows[row], far = answer.rows[row + 1];
      while (low < far) { const mid = low + far >> 1; if (left[mid] + width[mid] <= begin) low = mid + 1; else far = mid; }
      for (let i = low, end = answer.rows[row + 1]; i < end; i++) {
        const x0 = (left[i] - begin) * scale, x1 = x0 + width[i] * scale;
        if (x1 <= 0) continue;
        if (x0 >= w) break;
        let colour = this.tint(answer, i);
        if (searching && !hit[i]) colour = mix(colour, back, 0.72);
        if (i === this.hover && label[i]) colour = mix(colour, this.dark ? 0xffffffff : 0xff000000, 0.09);
        const a = Math.max(0, Math.floor(x0 + 0.5)), b = Math.min(w, Math.floor(x1 + 0.5));
        any = true;
        if (b <= a) {
          // Below a pixel: the widest of those that share it.
          const at = Math.min(w - 1, Math.max(0, Math.floor(x0)));
          if (at !== last || x1 - x0 > widest) { if (line[at] === back || at === last) line[at] = colour; widest = x1 - x0; }
          last = at;
          continue;
        }
        line.fill(colour, a, b - a > 3 ? b - Math.max(1, Math.floor(ratio)) : b);
        if (b - a >= least || (label[i] && (answer.head.kinds[label[i]] === "s" || answer.old)) && b - a > 3) written.push([i, a, b, y]);
      }
      if (!any) continue;
      const stop = Math.min(t, y + high - Math.max(1, Math.floor(ratio)));
      for (let at = Math.max(0, y); at < stop; at++) pixels.set(line, at * w);
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.putImageData(image, 0, 0);
    this.write(answer, written, ratio, this.dark ? "#f4f6f8" : "#14171a", high);
  }

  letter() {
    if (!this.wide) {
      this.pen.font = FONT;
      this.wide = this.pen.measureText("mmmmmmmmmm").width / 10 || 7;
    }
    return this.wide;
  }

  /** Names, patterns and outlines on what is painted. @param {Answer} answer @param {[number, number, number, number][]} written @param {number} ratio @param {string} ink @param {number} high */
  write(answer, written, ratio, ink, high) {
    const { pen } = this, letter = this.letter();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (const [i, a, b, y] of written) {
      const x = a / ratio, wide = (b - a) / ratio, top = y / ratio, kind = answer.head.kinds[answer.label[i]];
      if (kind === "s") this.hatch(x, top, wide, 7);
      if (answer.old && answer.fresh) {
        if (answer.fresh[i] === 0) this.hatch(x, top, wide, 4);
        else if (answer.old[i] === 0) this.dots(x, top, wide);
      }
      const name = this.text(i);
      if (!name || wide < 3 * letter) continue;
      const text = fitted(name, kind, Math.floor((wide - 6) / letter));
      if (!text) continue;
      pen.fillStyle = ink;
      pen.fillText(text, x + 3, top + ROW / 2);
    }
    const i = this.chosen;
    if (i <= 0 || i >= answer.count) return;
    const place = this.rect(i), box = this.canvas.getBoundingClientRect();
    pen.strokeStyle = ink;
    pen.lineWidth = 2;
    pen.strokeRect(place.x - box.left + 1, place.y - box.top + 1, Math.max(2, place.width - 3), high / ratio - 3);
  }

  /** @param {number} x @param {number} y @param {number} wide @param {number} step */
  hatch(x, y, wide, step) {
    const { pen } = this;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide - 1, ROW - 1);
    pen.clip();
    pen.strokeStyle = this.dark ? "#ffffff38" : "#00000030";
    pen.lineWidth = 1;
    pen.beginPath();
    for (let at = x - ROW; at < x + wide; at += step) { pen.moveTo(at, y + ROW); pen.lineTo(at + ROW, y); }
    pen.stroke();
    pen.restore();
  }

  /** @param {number} x @param {number} y @param {number} wide */
  dots(x, y, wide) {
    this.pen.fillStyle = this.dark ? "#ffffff48" : "#00000040";
    for (let at = x + 3; at < x + wide - 3; at += 6) {
      for (let down = 4; down < ROW - 2; down += 6) this.pen.fillRect(at, y + down, 1.5, 1.5);
    }
  }

  /** Keys that move the selection. @param {KeyboardEvent} event */
  key(event) {
    const answer = this.answer;
    if (!answer || event.ctrlKey || event.metaKey || event.altKey) return false;
    const at = this.chosen < 0 ? 0 : this.chosen, row = this.depth(at);
    const away = this.upside ? "ArrowUp" : "ArrowDown", home = this.upside ? "ArrowDown" : "ArrowUp";
    let next = -1;
    if (event.key === away) {
      const begin = answer.rows[row + 1], end = answer.rows[row + 2] ?? begin;
      for (let i = begin; i < end; i++) {
        if (answer.parent[i] === at && answer.label[i] && (next < 0 || answer.width[i] > answer.width[next])) next = i;
      }
    } else if (event.key === home) {
      if (at === 0) return this.out();
      next = answer.parent[at];
    } else if (event.key === "ArrowRight") next = at + 1 < answer.rows[row + 1] ? at + 1 : at;
    else if (event.key === "ArrowLeft") next = at > answer.rows[row] ? at - 1 : at;
    else if (event.key === "Enter") { if (at > 0) this.zoom(at); return true; }
    else if (event.key === "Backspace") return this.out();
    else if (event.key === "0" || event.key === "Home") { this.show({}).catch(() => {}); return true; }
    else if (event.key === "n" || event.key === "N") next = this.match(at, event.key === "n" ? 1 : -1);
    else if (event.key === "+" || event.key === "-") {
      const by = event.key === "+" ? 0.5 : 2, mid = (this.from + this.to) / 2, half = (this.to - this.from) / 2;
      this.window(mid - half * by, mid + half * by);
      return true;
    } else return false;
    if (next >= 0) this.choose(next);
    return true;
  }

  /** @param {number} at @param {number} step */
  match(at, step) {
    const { hit, count } = /** @type {Answer} */ (this.answer);
    for (let i = 1; i < hit.length; i++) {
      const next = (at + step * i + count * i) % count;
      if (hit[next]) return next;
    }
    return -1;
  }

  /** One level out. */
  out() {
    const answer = this.answer, crumbs = answer?.head.crumbs || [];
    if (this.to - this.from < 0.999) { this.window(0, 1); return true; }
    const up = crumbs[crumbs.length - (crumbs.at(-1)?.node === answer?.head.node ? 2 : 1)];
    if (up) this.show({ node: up.node, tree: answer?.head.tree }).catch(() => {});
    return true;
  }

  /** The picture as lines of an SVG file, text and all. @param {string} title */
  svg(title) {
    const answer = /** @type {Answer} */ (this.answer), wide = this.host.clientWidth;
    const rows = answer.rows.length - 1, safe = (/** @type {string} */ text) =>
      text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, "?");
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${wide}" height="${rows * ROW + 24}" font-family="monospace" font-size="12">`,
      `<rect width="100%" height="100%" fill="${this.dark ? "#141719" : "#fff"}"/>`,
      `<text x="4" y="16" fill="${this.dark ? "#fff" : "#000"}">${safe(title)}</text>`];
    const scale = wide / ((this.to - this.from) * answer.head.width), begin = this.from * answer.head.width;
    for (let row = 0; row < rows; row++) {
      const y = 24 + (this.upside ? rows - 1 - row : row) * ROW;
      for (let i = answer.rows[row]; i < answer.rows[row + 1]; i++) {
        const x0 = Math.max(0, (answer.left[i] - begin) * scale), x1 = Math.min(wide, (answer.left[i] + answer.width[i] - begin) * scale);
        if (x1 - x0 < 0.3) continue;
        const name = this.text(i), colour = this.tint(answer, i);
        out.push(`<g>${name ? `<title>${safe(name)}</title>` : ""}<rect x="${x0.toFixed(1)}" y="${y}" width="${Math.max(0.3, x1 - x0 - 0.5).toFixed(1)}" height="${ROW - 1}" fill="${css(colour)}"/>`);
        const text = name ? fitted(name, answer.head.kinds[answer.label[i]], Math.floor((x1 - x0 - 6) / 7.3)) : "";
        if (text) out.push(`<text x="${(x0 + 3).toFixed(1)}" y="${y + 14}" fill="${this.dark ? "#f2f4f6" : "#14171a"}">${safe(text)}</text>`);
        out.push("</g>");
      }
    }
    return `${out.join("\n")}\n</svg>\n`;
  }

  close() {
    this.flight?.abort();
    clearTimeout(this.slow);
    cancelAnimationFrame(this.frame);
    this.watch?.disconnect();
  }
}
