// Where the page stands: a page, the view (options of `tare report`), and the page's own state. All
// of it lives in the fragment of the address, readable, so a link shows what its sender saw.

import { quoted } from "./figures.js";

export const VIEW_KEYS = ["metric", "by", "time", "thread", "package", "root", "hide", "stable",
  "fold-recursion", "hide-jdk", "java-only", "native", "idle", "compensate"];
export const FLAGS = ["stable", "fold-recursion", "hide-jdk", "java-only", "native", "idle"];

/**
 * @typedef {object} Series
 * @property {string} id
 * @property {string} name
 * @property {string} kind
 * @property {string} unit
 * @property {boolean} has_times
 * @property {boolean} [default]
 * @property {number | null} period
 * @property {number} total
 * @property {string} estimate
 *
 * @typedef {object} Run
 * @property {string} name
 * @property {"file" | "live"} source
 * @property {number} epoch
 * @property {any} run
 * @property {string[]} headline
 * @property {number} duration_ns
 * @property {Series[]} series
 * @property {{page: string, has: boolean, how: string | null}[]} pages
 * @property {{format: string, about: string, ending: string}[]} exports
 * @property {string[]} command
 * @property {any} parts   of a JVM that is recorded here: what can be switched on and off
 */

export const state = {
  page: "overview",
  /** The view and, behind it, the page's own. */
  query: new URLSearchParams(),
  /** @type {Run} */
  run: /** @type {any} */ (null),
  epoch: 0,
  duration: 0,
  /** Live numbers stand still. */
  paused: false,
};

/** @type {Set<(own: boolean) => void>} */
const listeners = new Set();
/** @param {(own: boolean) => void} listener */
export const onChange = (listener) => { listeners.add(listener); };

/** Reads the fragment. @param {string} hash */
export function read(hash) {
  const text = hash.replace(/^#\/?/, ""), cut = text.indexOf("?");
  state.page = (cut < 0 ? text : text.slice(0, cut)) || "overview";
  state.query = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
}

/** The fragment of a page and a query. @param {string} page @param {URLSearchParams} query */
export function fragment(page, query) {
  // Readable: what a fragment may hold stands as it is, and flags stand bare.
  const text = String(query).replace(/%(3A|2C|2F|40|24|3B|28|29|5B|5D|7E|2A|3C|3E)/gi, (c) => decodeURIComponent(c))
    .replace(/=(?=&|$)/g, "").replace(/</g, "%3C").replace(/>/g, "%3E");
  return `#/${page}${text ? `?${text}` : ""}`;
}

/**
 * Goes to a page, keeps the view, and forgets the old page's own state.
 * @param {string} page @param {Record<string, string | string[] | boolean | null>} [changes]
 */
export function go(page, changes) {
  const query = page === state.page ? new URLSearchParams(state.query) : view();
  apply(query, changes || {});
  const next = fragment(page, query);
  if (next === location.hash) return;
  history.pushState(null, "", next);
  changed(false);
}

/** @param {URLSearchParams} query @param {Record<string, string | string[] | boolean | null>} changes */
function apply(query, changes) {
  for (const [key, value] of Object.entries(changes)) {
    query.delete(key);
    if (value === null || value === false) continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(key, one === true ? "1" : String(one));
  }
}

/** Changes the view or the page's own state; `quiet` does not ask again and leaves no history. @param {Record<string, string | string[] | boolean | null>} changes @param {boolean} [quiet] */
export function set(changes, quiet) {
  const before = String(view());
  apply(state.query, changes);
  const next = fragment(state.page, state.query);
  if (next === location.hash) return;
  if (quiet) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  if (!quiet) changed(before === String(view()));
}

/** Reads the address again, and tells. @param {boolean} own only the page's own state changed */
export function changed(own) {
  read(location.hash);
  for (const listener of listeners) listener(own);
}

/** The view alone, for a question; more parameters behind it. @param {Record<string, string | number | null | undefined>} [more] */
export function view(more) {
  const out = new URLSearchParams();
  for (const key of VIEW_KEYS) {
    for (const value of state.query.getAll(key)) out.append(key, FLAGS.includes(key) ? "1" : value);
  }
  for (const [key, value] of Object.entries(more || {})) {
    if (value !== null && value !== undefined && value !== "") out.append(key, String(value));
  }
  return out;
}

/** @returns {Series | undefined} the series that is shown */
export function series() {
  const all = state.run?.series || [], wanted = state.query.get("metric");
  return all.find((one) => one.id === wanted) || all.find((one) => one.default) || all[0];
}

/** Words for a series: its name, and its kind where that says more. @param {{name: string, kind: string}} one */
export function seriesName(one) {
  const kind = one.kind.replaceAll("-", " ");
  return kind.startsWith(one.name) ? kind : kind === one.name || !kind ? one.name : `${one.name}: ${kind}`;
}

/** Adds a method to a key that may be repeated, as patterns write it. @param {string} key @param {string} value */
export const add = (key, value) => ({ [key]: [...new Set([...state.query.getAll(key), value.replace(/(?<=.)\(.*/, "")])] });

/** How a command about this run begins. */
export const begins = () => (state.run.command[0] === "tare" ? [...state.run.command] : ["tare", ...state.run.command]);

/** What the terminal would be asked for the same. */
export function command() {
  const words = begins();
  for (const [key, value] of view()) words.push(FLAGS.includes(key) ? `--${key}` : `--${key}=${value}`);
  const method = state.query.get("method");
  if (method) words.push(`--method=${method}`);
  const more = { threads: "--threads", locks: "--locks", classes: "--classes" }[state.page];
  if (more) words.push(more);
  return words.map(quoted).join(" ");
}
