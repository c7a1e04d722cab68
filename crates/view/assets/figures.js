// Figures as `tare report` writes them: three digits that count, units of the field.

/** @param {number} value @param {[number, string][]} steps */
function scaled(value, steps) {
  const size = Math.abs(value);
  const [by, name] = steps.find(([least]) => size >= least * 0.9995) || steps[steps.length - 1];
  return `${digits(value / by)} ${name}`;
}

/** Three digits that count. @param {number} value */
function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 999.5) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** @param {number} ns */
export const time = (ns) => (ns === 0 ? "0 s"
  : Math.abs(ns) >= 600e9 ? `${Math.floor(ns / 60e9).toLocaleString("en")} min ${Math.round(ns % 60e9 / 1e9)} s`
  : scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]));

/** @param {number} bytes */
export const bytes = (bytes) => (Math.abs(bytes) < 1000 ? `${Math.round(bytes)} B`
  : scaled(bytes, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]));

/** @param {number} value */
export const count = (value) => Math.round(value).toLocaleString("en");

/** An amount in a unit of a series. @param {number} value @param {string} unit */
export const amount = (value, unit) =>
  (unit === "ns" ? time(value) : unit === "bytes" ? bytes(value) : count(value));

/** @param {number} part @param {number} whole */
export const percent = (part, whole) => (whole ? `${(100 * part / whole).toFixed(1)} %` : "0.0 %");

/** A moment of the run, exact to what a pixel is worth. @param {number} ns @param {number} [step] */
export function moment(ns, step = 1e6) {
  const places = step >= 1e9 ? 0 : Math.min(9, Math.ceil(9 - Math.log10(Math.max(1, step))));
  const text = (ns / 1e9).toFixed(places);
  return `${places ? text.replace(/\.?0+$/, "") : text}s`;
}

/** `FROM..TO` as nanoseconds, or null. @param {string | null} text @param {number} end */
export function span(text, end) {
  if (!text || !text.includes("..")) return null;
  const [from, to] = text.split("..").map((part) => {
    const match = /^([0-9.]+)(ns|us|µs|ms|s|m|h)?$/.exec(part.trim());
    if (!match) return null;
    const by = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 }[match[2] || "s"];
    return Number(match[1]) * /** @type {number} */ (by);
  });
  return { from: from ?? 0, to: to ?? end };
}

/** The same, backwards. @param {number} from @param {number} to @param {number} step */
export const spanText = (from, to, step) => `${moment(Math.max(0, from), step)}..${moment(to, step)}`;

/** A word of the shell. @param {string} text */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Round steps of an axis. @param {number} from @param {number} to @param {number} most */
export function ticks(from, to, most) {
  const rough = (to - from) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough) || rough;
  const out = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push(at);
  return { step, at: out };
}

/** A name without its packages. @param {string} name */
export const short = (name) => {
  const paren = name.indexOf("("), head = paren < 0 ? name : name.slice(0, paren);
  return head.split(".").slice(-2).join(".") + (paren < 0 ? "" : name.slice(paren));
};
