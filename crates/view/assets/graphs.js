// The pages of the flame graph and of the sandwich, and the panel of the selected frame.

import { $, answered, button, copy, h, menu, meter, tip } from "./dom.js";
import { Panel, get, getBytes } from "./api.js";
import { amount, count, percent, short } from "./figures.js";
import { add, go, series, set, state, view } from "./state.js";
import { Flame, decode } from "./flame.js";
import { download } from "./app.js";
import { Tree } from "./methods.js";
import { exactly } from "./live.js";
import { unit } from "./lanes.js";

/** @typedef {import("./flame.js").Answer} Answer */

/** A question of the graph as one to the server. @param {Record<string, string | number | null>} more */
const asking = (more) => async (/** @type {any} */ question, /** @type {AbortSignal} */ signal) => {
  const query = view({ ...more, width: question.width, rows: question.rows, q: state.query.get("q") });
  for (const key of ["node", "tree", "path"]) if (question[key] !== undefined && question[key] !== null) query.set(key, String(question[key]));
  if (question.from > 0 || question.to < 1) { query.set("from", String(question.from)); query.set("to", String(question.to)); }
  const path = more.diff ? "diff/flame" : "flame";
  query.delete("diff");
  try {
    return decode(await getBytes(path, query, signal));
  } catch (/** @type {any} */ error) {
    if (error?.status !== 409) throw error;
    // The data moved on: the same node by its lasting name, or the root.
    query.delete("node");
    query.delete("tree");
    return decode(await getBytes(path, query, signal));
  }
};

/** The tip beside the pointer. @param {Answer} answer @param {number} i @param {number} x @param {number} y */
export function frameTip(answer, i, x, y) {
  if (i < 0) return tip(null);
  const text = answer.head.labels[answer.label[i]], total = (answer.value || answer.width)[i];
  const name = answer.label[i] === 0 ? "frames too narrow to draw" : text ?? "…";
  const lines = [h("b", null, name), h("div", null, `${amount(total, answer.head.unit)} · ${percent(total, answer.head.whole)} of the whole`,
    answer.head.node !== 0 ? ` · ${percent(total, answer.head.total)} of the zoomed` : "")];
  if (answer.old && answer.fresh) lines.push(h("div", null, `${amount(answer.old[i], answer.head.unit)} → ${amount(answer.fresh[i], answer.head.unit)}`));
  tip(lines, x, y);
  if (text === null && answer.label[i]) nameLater(answer, i, x, y);
}

let naming = 0;
/** @param {Answer} answer @param {number} i @param {number} x @param {number} y */
function nameLater(answer, i, x, y) {
  clearTimeout(naming);
  naming = setTimeout(async () => {
    try {
      const node = await get("node", view({ tree: answer.head.tree, node: answer.node[i] }));
      answer.head.labels[answer.label[i]] = node.text;
      if (!$("tip").hidden) frameTip(answer, i, x, y);
    } catch { /* the tip stays without a name */ }
  }, 120);
}

/** @param {string} text @param {number} x @param {number} y @param {{text: string, run: () => void}[]} more */
function frameMenu(text, x, y, more) {
  const anchor = h("span", { class: "anchor", title: text });
  anchor.style.left = `${x}px`;
  anchor.style.top = `${y}px`;
  document.body.append(anchor);
  menu(anchor, [h("p", { class: "name" }, short(text)), ...more,
    { text: "Only what it calls", run: () => go(state.page, { ...add("root", text), path: null }) },
    { text: "Hide it: its time counts for its callers", run: () => go(state.page, { ...add("hide", text), path: null }) },
    { text: "Sandwich: callers and callees", run: () => go("sandwich", { method: text }) },
    { text: "Source", run: () => go("source", { method: text }) },
    { text: "In the list of methods", run: () => go("methods", { q: text }) },
    { text: "Search for it", run: () => set({ q: text }) },
    { text: "Copy the name", run: () => copy(text, "Name") }]);
  anchor.remove();
}

/** @param {Flame} flame @param {string} name */
export function pictures(flame, name) {
  const title = `${state.run.name} · ${series()?.name ?? ""} · tare`;
  return [
    { text: "Picture as PNG", hint: ".png", run: () => flame.canvas.toBlob((blob) => { if (blob) download(blob, `${name}.png`); }) },
    { text: "Picture as SVG", hint: ".svg", run: () => download(new Blob([flame.svg(title)], { type: "image/svg+xml" }), `${name}.svg`) }];
}

/** The hooks of tests. @param {() => Flame[]} all */
export function forTests(all) {
  const tare = /** @type {any} */ (window).tare;
  tare.at = (/** @type {number} */ x, /** @type {number} */ y) => {
    for (const flame of all()) {
      const i = flame.find(x, y);
      if (i >= 0 && flame.answer) return { text: flame.text(i), node: flame.answer.node[i], own: null, total: flame.total(i) };
    }
    return null;
  };
  tare.flame = () => {
    const flame = all()[0], answer = flame?.answer;
    return answer ? { rows: answer.rows.length - 1, count: answer.count, text: (/** @type {number} */ i) => flame.text(i),
      total: (/** @type {number} */ i) => flame.total(i), rect: (/** @type {number} */ i) => flame.rect(i) } : null;
  };
}

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function flamePage(host) {
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Zoomed to" }), stage = h("div"), side = h("aside", { class: "side", "aria-label": "Selected frame" });
  const below = h("div", { class: "below" }), said = h("output", { class: "matched", hidden: true });
  let upside = localStorage.getItem("tare-upside") === "1", listed = false;
  const graph = h("div", { class: "graph" }, stage, below);
  host.append(h("div", { class: "tools" }, crumbs, said, h("div", { class: "buttons" },
    button("Merge recursion", () => set({ "fold-recursion": !state.query.has("fold-recursion"), path: null }), { "data-flag": "fold-recursion" }),
    button("Hide JDK", () => set({ "hide-jdk": !state.query.has("hide-jdk"), path: null }), { "data-flag": "hide-jdk" }),
    button("Native", () => set({ native: !state.query.has("native"), path: null }), { "data-flag": "native", title: "Frames of native code, the JVM and the kernel" }),
    button("Flip", () => flip(), { title: "Root at the top or at the bottom (r)" }),
    button("Table", () => list(), { title: "The same as a table (v)", "data-list": "" }),
    button("Whole", () => { set({ q: null, path: null }); flame.show({}).catch(problem); }, { title: "Back to the whole graph (0)" }))),
  h("div", { class: "split" }, graph, side));
  const panel = new Panel(side, (signal) => {
    const answer = flame.answer;
    return answer && flame.chosen >= 0 ? get("node", view({ tree: answer.head.tree, node: answer.node[flame.chosen] }), signal) : Promise.resolve(null);
  }, (node) => drawNode(side, node));
  /** @type {Tree | null} */
  let tree = null;
  let why = "";
  const trouble = h("div", { class: "problem", role: "alert", hidden: true });
  graph.prepend(trouble);
  const problem = (/** @type {any} */ error) => {
    if (error?.name === "AbortError") return;
    answered();
    trouble.hidden = false;
    trouble.textContent = [error?.message, error?.remedy].filter(Boolean).join(" ");
  };
  const flame = new Flame(stage, {
    ask: asking({}), upside, label: "Flame graph. Arrows choose a frame, Enter zooms in, Backspace zooms out, v shows the same as a table",
    selected: (answer, i) => {
      $("live").textContent = `${answer.head.labels[answer.label[i]] ?? "a narrow frame"}, ${percent(flame.total(i), answer.head.whole)}`;
      panel.ask();
    },
    answered: (answer) => {
      answered();
      trouble.hidden = true;
      const { head } = answer;
      if (!answer.width[0]) problem({ message: "Nothing passes the filters.", remedy: "Take one away at the top: ×." });
      const last = head.crumbs?.at(-1), zoomed = head.crumbs?.length ? head.crumbs : [];
      crumbs.replaceChildren(...zoomed.map((/** @type {any} */ one, /** @type {number} */ i) => button(i ? short(one.text) : "all",
        () => flame.show({ node: one.node, tree: head.tree }).catch(problem), { title: one.text, "aria-current": one === last ? "true" : null })));
      const figure = h("span", { class: "dim" }, amount(head.total, head.unit));
      figure.dataset.figure = "total";
      figure.dataset.value = String(head.total);
      crumbs.append(figure);
      crumbs.scrollLeft = crumbs.scrollWidth;
      if (tree && tree.options.path !== head.path) { tree.options.path = head.path; tree.ask("view"); }
      said.textContent = head.matched === null || head.matched === undefined ? "" : `${percent(head.matched, head.whole)} matched`;
      said.hidden = !said.textContent;
      if (!why) set({ path: head.node === 0 ? null : head.path }, true);
      if (flame.chosen < 0) flame.chosen = 0;
      panel.ask("epoch");
    },
    hovered: frameTip,
    menu: (answer, i, x, y) => {
      const text = answer.head.labels[answer.label[i]];
      if (text) frameMenu(text, x, y, [{ text: "Zoom", run: () => flame.zoom(i) }]);
    },
  });
  forTests(() => [flame]);
  const flip = () => {
    upside = flame.upside = !upside;
    localStorage.setItem("tare-upside", upside ? "1" : "0");
    flame.goHome();
  };
  const list = () => {
    listed = !listed;
    host.querySelector("[data-list]")?.setAttribute("aria-pressed", String(listed));
    below.hidden = !listed;
    tree?.close();
    tree = null;
    below.replaceChildren();
    if (listed) { tree = new Tree(below, { path: flame.answer?.head.path }); tree.ask("view"); }
  };
  below.hidden = true;
  return {
    update(reason) {
      for (const one of /** @type {HTMLElement[]} */ ([...host.querySelectorAll("[data-flag]")])) {
        one.setAttribute("aria-pressed", String(state.query.has(one.dataset.flag || "")));
      }
      if (reason === "epoch") {
        if (!flame.flight) flame.again().catch(() => {});
        return;
      }
      const path = state.query.get("path");
      why = reason;
      flame.show({ path }).catch(problem).finally(() => { why = ""; });
      tree?.ask("view");
    },
    key(event) {
      if (event.key === "r") return flip(), true;
      if (event.key === "v") return list(), true;
      if (event.target instanceof Node && below.contains(event.target)) return false;
      return flame.key(event);
    },
    share: () => pictures(flame, "flame"),
    look: () => flame.recolour(),
    close: () => { flame.close(); panel.stop(); tree?.close(); },
  };
}

/** @param {HTMLElement} side @param {any} node */
function drawNode(side, node) {
  if (!node) return side.replaceChildren(h("p", { class: "dim" }, "Click a frame: it zooms, and this says more about it."));
  const how = unit(), line = (/** @type {string} */ name, /** @type {Node | string} */ value) => [h("dt", null, name), h("dd", null, value)];
  const between = (/** @type {number[] | null} */ interval) => (interval?.[1] ? h("small", { class: "dim" }, ` ${amount(interval[0], how)} to ${amount(interval[1], how)}`) : "");
  const known = node.kind !== "a" && node.kind !== "r";
  side.replaceChildren(
    h("h2", { class: "name wrap" }, node.text),
    node.file ? h("p", { class: "dim" }, `${node.file}${node.line ? `:${node.line}` : ""}`) : "",
    h("dl", null,
      ...line("total", h("span", null, h("b", null, amount(node.total, how)), between(node.total_interval))),
      ...line("of the whole", meter(node.share_total, percent(node.share_total, 1))),
      ...(node.share_parent !== undefined && node.share_parent !== null && known ? line("of its caller", meter(node.share_parent, percent(node.share_parent, 1))) : []),
      ...line("itself", h("span", null, h("b", null, amount(node.own, how)), between(node.own_interval))),
      ...(known && node.calls !== null && node.calls !== undefined ? [...line("calls", count(node.calls)), ...(node.calls ? line("per call", amount(node.total / node.calls, how)) : [])] : []),
      ...(node.folded ? line("folded", `${count(node.folded)} frames`) : [])),
    known ? h("div", { class: "buttons column" },
      button("Callers and callees", () => go("sandwich", { method: node.text })),
      "jd".includes(node.kind) ? button("Source", () => go("source", { method: node.text })) : "",
      button("Only what it calls", () => set({ ...add("root", node.text), path: null })),
      button("Hide it", () => set({ ...add("hide", node.text), path: null }), { title: "Its time counts for its callers" }),
      button("In the list of methods", () => go("methods", { q: node.text })),
      button("Copy the name", () => copy(node.text, "Name"))) : "",
    known ? exactly(node.text, node.kind) : "",
    known ? "" : h("p", { class: "dim" }, "Click a frame: it zooms in, and this tells more about it. Right click: more to do with it."),
    node.parents?.length ? h("h3", null, "Called through") : "",
    h("ol", { class: "stack" }, ...[...(node.parents || [])].reverse().slice(0, 12).map((/** @type {any} */ one) => h("li", { class: "name", title: one.text }, short(one.text)))));
}

/** @param {HTMLElement} host @returns {import("./app.js").Page} */
export function sandwichPage(host) {
  const method = () => state.query.get("method") || "";
  const title = h("h2", { class: "name wrap" }), figures = h("div", { class: "strip-figures" }), measured = h("div", { class: "measured" });
  const above = h("div"), below = h("div"), problem = h("div", { class: "problem", role: "alert", hidden: true });
  const callers = h("div", { class: "list" }), callees = h("div", { class: "list" });
  const make = (/** @type {HTMLElement} */ stage, /** @type {string} */ side, /** @type {boolean} */ upside) => new Flame(stage, {
    ask: (question, signal) => asking({ method: method(), side })(question, signal), upside, bare: true, fit: true, most: 320,
    label: side === "callers" ? "Callers, upside down" : "Callees",
    hovered: frameTip,
    menu: (answer, i, x, y) => { const text = answer.head.labels[answer.label[i]]; if (text) frameMenu(text, x, y, []); },
  });
  const flames = [make(below, "callees", false), make(above, "callers", true)];
  host.append(h("div", { class: "sandwich" }, problem, h("div", { class: "tools" }, title, h("div", { class: "buttons" },
    button("Flame graph", () => go("flame", { q: method() })), button("Only what it calls", () => go("flame", { ...add("root", method()) })), button("Source", () => go("source", { method: method() })))), figures, measured,
  h("h3", null, "Callers"), above, h("h3", null, "Callees"), below, h("div", { class: "two" }, callers, callees)));
  forTests(() => flames);
  const panel = new Panel(figures, (signal) => get("around", view({ method: method() }), signal), (around) => {
    const how = unit(), of = `${around.name} ${around.kind}`;
    if (measured.dataset.of !== of) { measured.dataset.of = of; measured.replaceChildren(exactly(around.name, around.kind)); }
    figures.replaceChildren(h("span", null, "itself ", h("b", null, amount(around.self, how))), h("span", null, "total ", h("b", null, amount(around.total, how))),
      around.calls !== null && around.calls !== undefined ? h("span", null, "calls ", h("b", null, count(around.calls))) : "");
    for (const [box, rows, word] of /** @type {[HTMLElement, any[], string][]} */ ([[callers, around.callers, "Callers"], [callees, around.callees, "Callees"]])) {
      box.replaceChildren(h("h3", null, `${word}, one level`), rows.length ? h("ul", { class: "bars" }, ...rows.slice(0, 40).map((row) => {
        const item = h("li", null, meter(row.total / (around.total || 1), percent(row.total, around.total)), button(row.name, () => go("sandwich", { method: row.name }), { class: "name link", title: row.name }));
        item.dataset.name = row.name;
        return item;
      })) : h("p", { class: "dim" }, word === "Callers" ? "Nobody: it is where stacks begin." : "It calls nothing that was seen."));
    }
  });
  const ask = (/** @type {"view" | "epoch"} */ why) => {
    title.textContent = method() || "No method is chosen";
    panel.ask(why);
    for (const flame of flames) {
      if (why === "epoch" && flame.flight) continue;
      flame.show({}).then(() => { problem.hidden = true; }, (error) => {
        if (error?.name === "AbortError") return;
        problem.hidden = false;
        problem.textContent = error?.message;
      });
    }
  };
  return {
    update: (why) => ask(why === "epoch" ? "epoch" : "view"),
    key: (event) => (document.activeElement === above ? flames[1] : flames[0]).key(event),
    share: () => pictures(flames[0], "callees"),
    look: () => flames.forEach((flame) => flame.recolour()),
    close: () => { flames.forEach((flame) => flame.close()); panel.stop(); },
  };
}

/** A flame graph of two recordings. @param {HTMLElement} stage @param {() => Record<string, string>} more */
export function diffFlame(stage, more) {
  const flame = new Flame(stage, { ask: (question, signal) => asking({ ...more(), diff: "1" })(question, signal), fit: true, most: 480,
    label: "Flame graph of both: orange grew, blue shrank, hatched vanished, dotted is new", hovered: frameTip });
  forTests(() => [flame]);
  return flame;
}
