// The first page: findings, worst first, each with a way on; beside them what was measured.

import { button, copy, h, meter } from "./dom.js";
import { Panel, get } from "./api.js";
import { amount, count, percent, quoted, time } from "./figures.js";
import { begins, fragment, go, seriesName, state, view } from "./state.js";
import { table } from "./grid.js";

/** What a kind of finding is called, and its sign. @type {Record<string, [string, string]>} */
const KINDS = { dominates: ["▸", "found"], lost: ["−", "not seen"], trust: ["±", "how sure"] };

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function overview(host) {
  const left = h("section", { class: "findings", "aria-label": "Findings" }), right = h("aside", { class: "facts", "aria-label": "Figures" });
  host.append(h("div", { class: "overview" }, left, right));
  const panel = new Panel(host, (signal) => get("overview", view(), signal), (answer) => {
    const { findings, metric, total } = answer, unit = metric?.unit || "count";
    const main = findings.filter((/** @type {any} */ one) => one.kind === "dominates"), aside = findings.filter((/** @type {any} */ one) => one.kind !== "dominates");
    left.replaceChildren(h("h2", null, "Findings"),
      ...main.map((/** @type {any} */ one, /** @type {number} */ i) => card(one, i)),
      main.length ? "" : h("p", { class: "card calm" }, answer.looked_for || "Nothing stands out."),
      aside.length ? h("h3", null, "How far to trust this") : "",
      ...aside.map((/** @type {any} */ one, /** @type {number} */ i) => card(one, main.length + i)));
    const figure = h("b", null, amount(total, unit));
    figure.dataset.figure = "total";
    figure.dataset.value = String(total);
    right.replaceChildren(
      h("div", { class: "figure" }, figure, h("span", { class: "dim" }, metric ? `${seriesName(metric)}, ${metric.estimate}` : "")),
      block("Methods", "methods", "what each takes itself", table("Top methods", [
        { id: "self", title: "itself", width: "", narrow: true, cell: (row) => meter(row.self / total, percent(row.self, total)), value: (row) => row.self },
        { id: "name", title: "method", width: "", left: true, narrow: true, cell: (row) => link(row.name, "sandwich", { method: row.name }), value: (row) => row.name }],
        answer.methods || [], (row) => row.name)),
      (answer.threads || []).length ? block("Threads", "threads", "busiest", table("Top threads", [
        { id: "value", title: "share", width: "", narrow: true, cell: (row) => meter(row.value / total, percent(row.value, total)), value: (row) => row.value },
        { id: "name", title: "thread", width: "", left: true, narrow: true, cell: (row) => link(row.name, "flame", { thread: row.name }), value: (row) => row.name }],
        answer.threads, (row) => row.name)) : "",
      answer.collections ? block("Collections", "timeline", "", h("p", null, answer.collections.count
        ? `${count(answer.collections.count)} pauses, ${time(answer.collections.total_ns)} in all (${percent(answer.collections.total_ns, state.duration)} of the run), the longest ${time(answer.collections.longest_ns)}`
        : "No pause for garbage collection.")) : "",
      block("Run", "", "", h("div", { class: "pre dim" }, (answer.headline || state.run.headline).join("\n")), flags()),
      (answer.losses || []).length ? block("Losses", "", "counted, not hidden", h("ul", null, ...answer.losses.map((/** @type {any} */ one) =>
        h("li", null, `${count(one.count)} ${one.name}`, one.reason ? h("span", { class: "dim" }, `: ${one.reason}`) : "")))) : "");
  });
  return { update: (why) => { if (why !== "own") panel.ask(why); }, close: () => panel.stop() };
}

/** The program's command line, folded. */
function flags() {
  const line = state.run.run?.command_line || [], jvm = state.run.run?.flags || [];
  if (!line.length) return "";
  return h("details", null, h("summary", null, "Command line"), h("code", { class: "wrap" }, [...jvm, ...line].join(" ")));
}

/** @param {any} finding @param {number} i */
function card(finding, i) {
  const [sign, word] = KINDS[finding.kind] || KINDS.dominates;
  const words = finding.options ? [...begins(), ...finding.options].map(quoted).join(" ") : "";
  // The figure of a sentence is what the eye looks for.
  const parts = String(finding.text).split(/((?:± )?\d[\d.,]* ?(?:%|s\b|ms|µs|GB|MB|kB))/), first = parts.findIndex((_, at) => at % 2 === 1);
  const box = h("article", { class: `card ${finding.kind}`, "data-finding": finding.kind },
    h("span", { class: "sign", title: word, "aria-hidden": "true" }, sign),
    h("p", null, ...parts.map((part, at) => (at % 2 ? h(at === first ? "strong" : "b", null, part) : part))),
    h("div", { class: "buttons" },
      finding.show ? button("Show", () => { location.hash = `#${finding.show}`; }, { "aria-label": `Show finding ${i + 1}`, class: "first" }) : null,
      words ? button("Copy as command", () => copy(words, "Command"), { "aria-label": `Copy finding ${i + 1} as command`, title: words, class: "link" }) : null));
  return box;
}

/** @param {string} title @param {string} page @param {string} hint @param {...(Node | string)} content */
function block(title, page, hint, ...content) {
  const known = page && state.run.pages.some((one) => one.page === page);
  return h("section", { class: "block" }, h("h3", null, known ? h("a", { href: fragment(page, view()), click: (/** @type {Event} */ event) => { event.preventDefault(); go(page); } }, title) : title,
    hint ? h("small", { class: "dim" }, ` ${hint}`) : ""), ...content);
}

/** @param {string} text @param {string} page @param {Record<string, string>} more */
export function link(text, page, more) {
  return h("a", { class: "name", title: text, href: fragment(page, view(more)), click: (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    go(page, more);
  } }, text);
}
