// Colours of frames: hues after Okabe and Ito, computed in OKLCH so that text on every one of them
// has a contrast of at least 4.5, and kinds differ in lightness as well as in hue. Integers only, so a
// picture is the same on every machine.

/** Lightness, chroma and hue as one number 0xAABBGGRR, as image data wants it. @param {number} l @param {number} c @param {number} hue */
export function oklch(l, c, hue) {
  const a = c * Math.cos(hue * Math.PI / 180), b = c * Math.sin(hue * Math.PI / 180);
  const L = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const M = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const S = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const byte = (/** @type {number} */ v) => {
    const x = Math.max(0, Math.min(1, v));
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  };
  const r = byte(4.0767416621 * L - 3.3077115913 * M + 0.2309699292 * S);
  const g = byte(-1.2684380046 * L + 2.6097574011 * M - 0.3413193965 * S);
  const blue = byte(-0.0041960863 * L - 0.7034186147 * M + 1.707614701 * S);
  return (0xff000000 | blue << 16 | g << 8 | r) >>> 0;
}

/** @param {number} colour */
export const css = (colour) =>
  `rgb(${colour & 255} ${colour >> 8 & 255} ${colour >> 16 & 255})`;

/** @param {string} text */
function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return (value ^ value >>> 15) >>> 0;
}

// Kind of frame: lightness by day and by night, chroma, hue.
/** @type {Record<string, [number, number, number, number]>} */
const KINDS = {
  a: [0.93, 0.30, 0.008, 250], r: [0.90, 0.28, 0, 0], j: [0.83, 0.43, 0.085, 160],
  i: [0.90, 0.49, 0.07, 105], d: [0.89, 0.36, 0.035, 240], n: [0.78, 0.52, 0.12, 70],
  k: [0.70, 0.41, 0.13, 40], c: [0.74, 0.49, 0.09, 345], s: [0.86, 0.40, 0, 0],
  g: [0.81, 0.42, 0.075, 235], f: [0.80, 0.38, 0.03, 280],
};

/** What the help says of the colours. @type {[string, string][]} */
export const LEGEND = [["j", "your packages, a shade each"], ["d", "JDK"], ["n", "native"],
  ["k", "kernel"], ["c", "class of the objects"], ["g", "package, jar or loader"],
  ["s", "not code, hatched"], ["r", "too narrow to draw"]];

// Shades of packages stay between yellow-green and teal, far from the other kinds.
const SHADES = [160, 178, 142, 125, 190, 150, 170, 134];

/** The colour of a frame. @param {string} kind @param {string | null} name @param {boolean} dark */
export function frameColour(kind, name, dark) {
  const [day, night, chroma, hue] = KINDS[kind] || KINDS.s;
  const wobble = name ? (hash(name) % 7 - 3) * 0.006 : 0;
  let angle = hue;
  if ((kind === "j" || kind === "i") && name) {
    const parts = name.split("(")[0].split(".").slice(0, -2).slice(0, 3).join(".");
    angle = kind === "j" ? SHADES[hash(parts) % SHADES.length] : hue;
  }
  // Groups have no package to go by: their own names shade them.
  if (kind === "g" && name) angle = hue - 30 + hash(name) % 61;
  return oklch((dark ? night : day) + wobble, chroma * (dark ? 0.9 : 1), angle);
}

/** Grew orange, shrank blue, the paler the less; `change` from -1 to 1. @param {number} change @param {boolean} dark */
export function changeColour(change, dark) {
  const strength = Math.min(1, Math.abs(change)) ** 0.6, chroma = 0.005 + 0.125 * strength;
  const light = dark ? 0.33 + 0.16 * strength : 0.92 - 0.17 * strength;
  return oklch(light, chroma, change > 0 ? 60 : 245);
}

/** `share` of the second colour in the first. @param {number} one @param {number} two @param {number} share */
export function mix(one, two, share) {
  let out = 0xff000000;
  for (const by of [0, 8, 16]) {
    out |= Math.round((one >> by & 255) * (1 - share) + (two >> by & 255) * share) << by;
  }
  return out >>> 0;
}
