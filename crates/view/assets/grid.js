// A table of any length: only the rows in sight are elements. Columns sort, rows are chosen by click
// or arrows, a tree's rows open and close. On paper it is whole, up to 200 rows.

import { h } from "./dom.js";

const ROW = 27, PAPER = 200;

/**
 * @template R
 * @typedef {object} Column
 * @property {string} id
 * @property {string} title
 * @property {string} [hint]     what the column means
 * @property {boolean} [left]    text, at the left
 * @property {string} width      of the grid's template
 * @property {boolean} [narrow]  shown on narrow screens, too
 * @property {boolean} [roomy]   shown on wide screens only
 * @property {boolean} [sort]
 * @property {(row: R) => Node | string} cell
 * @property {(row: R) => number | string | null} [value]
 */

/**
 * @template R
 * @typedef {object} GridOptions
 * @property {string} label
 * @property {Column<R>[]} columns
 * @property {(row: R) => string} name
 * @property {(row: R, i: number) => void} [choose]
 * @property {(row: R, i: number) => void} [enter]    double click or Enter
 * @property {(column: string) => void} [sort]
 * @property {(row: R, i: number, open: boolean) => void} [toggle]    of a tree
 * @property {(row: R) => {depth: number, open: boolean, leaf: boolean}} [tree]
 * @property {(i: number) => void} [missing]     a row in sight that is not there yet
 * @property {(row: R) => boolean} [pale]
 */

/** @template R */
export class Grid {
  /** @param {HTMLElement} host @param {GridOptions<R>} options */
  constructor(host, options) {
    this.options = options;
    /** @type {(R | undefined)[]} */
    this.rows = [];
    this.count = 0;
    this.chosen = -1;
    this.sorted = { column: "", down: true };
    this.head = h("div", { class: "grid-head", role: "row" });
    this.body = h("div", { class: "grid-body", role: "rowgroup" });
    this.box = h("div", { class: "grid", role: options.tree ? "treegrid" : "grid", tabindex: 0,
      "aria-label": options.label }, h("div", { role: "rowgroup", class: "grid-top" }, this.head), this.body);
    host.append(this.box);
    this.box.addEventListener("scroll", () => this.draw());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.box);
    this.paper = () => this.draw(PAPER);
    this.screen = () => this.draw();
    addEventListener("beforeprint", this.paper);
    addEventListener("afterprint", this.screen);
    this.heads();
  }

  heads() {
    const { columns, sort } = this.options;
    this.box.style.setProperty("--columns", columns.map((one) => one.width).join(" "));
    this.box.style.setProperty("--medium", columns.filter((one) => !one.roomy).map((one) => one.width).join(" "));
    this.box.style.setProperty("--narrow", columns.filter((one) => one.narrow).map((one) => one.width).join(" "));
    this.head.replaceChildren(...columns.map((column) => {
      const is = this.sorted.column === column.id;
      const cell = h("div", { role: "columnheader", class: classes(column), title: column.hint,
        "aria-sort": is ? (this.sorted.down ? "descending" : "ascending") : null });
      if (sort && column.sort) {
        cell.append(h("button", { type: "button", tabindex: -1, click: () => sort(column.id) },
          column.title, is ? h("span", { "aria-hidden": true }, this.sorted.down ? " ↓" : " ↑") : null));
      } else cell.append(column.title);
      return cell;
    }));
  }

  /** @param {(R | undefined)[]} rows @param {number} [count] */
  show(rows, count = rows.length) {
    this.rows = rows;
    this.count = count;
    this.box.setAttribute("aria-rowcount", String(count + 1));
    this.body.style.height = `${count * ROW}px`;
    if (this.chosen >= count) this.chosen = -1;
    this.draw();
  }

  /** @param {number} [paper] */
  draw(paper = 0) {
    const { columns, tree, name } = this.options;
    const from = paper ? 0 : Math.max(0, Math.floor(this.box.scrollTop / ROW) - 4);
    const to = Math.min(this.count, paper || from + Math.ceil((this.box.clientHeight || 600) / ROW) + 9);
    if (paper) this.body.style.height = `${to * ROW}px`;
    else this.body.style.height = `${this.count * ROW}px`;
    const out = [];
    for (let i = from; i < to; i++) {
      const row = this.rows[i];
      const line = h("div", { role: "row", class: `row${i === this.chosen ? " chosen" : ""}${row && this.options.pale?.(row) ? " pale" : ""}`,
        "aria-rowindex": i + 2, "aria-selected": i === this.chosen ? "true" : "false", id: `${this.id}-${i}` });
      line.style.top = `${i * ROW}px`;
      if (!row) {
        line.append(h("div", { role: "gridcell", class: "dim" }, "…"));
        this.options.missing?.(i);
      } else {
        line.dataset.name = name(row);
        const branch = tree?.(row);
        if (branch) {
          line.setAttribute("aria-level", String(branch.depth + 1));
          if (!branch.leaf) line.setAttribute("aria-expanded", String(branch.open));
        }
        for (const column of columns) {
          const cell = h("div", { role: "gridcell", class: classes(column) }, column.cell(row));
          cell.dataset.col = column.id;
          const value = column.value?.(row);
          if (value !== undefined && value !== null) cell.dataset.value = String(value);
          line.append(cell);
        }
        line.addEventListener("click", (event) => this.clicked(event, i));
        line.addEventListener("dblclick", () => { const now = this.rows[i]; if (now) this.options.enter?.(now, i); });
      }
      out.push(line);
    }
    this.body.replaceChildren(...out);
    if (this.chosen >= from && this.chosen < to) this.box.setAttribute("aria-activedescendant", `${this.id}-${this.chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  id = `grid-${Math.random().toString(36).slice(2, 8)}`;

  /** @param {MouseEvent} event @param {number} i */
  clicked(event, i) {
    const row = this.rows[i];
    if (!row) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("a, button") && !target.classList.contains("twist")) return;
    if (target.classList.contains("twist") && this.options.toggle && this.options.tree) {
      return this.options.toggle(row, i, !this.options.tree(row).open);
    }
    this.choose(i);
  }

  /** @param {number} i */
  choose(i) {
    const row = this.rows[i];
    if (!row) return;
    this.chosen = i;
    const top = i * ROW, room = this.box.clientHeight - ROW;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW > this.box.scrollTop + room) this.box.scrollTop = top + ROW - room;
    this.draw();
    this.options.choose?.(row, i);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.box) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 2), at = this.chosen, row = this.rows[at];
    const to = { ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1), PageDown: at + page, PageUp: at - page,
      Home: 0, End: this.count - 1 }[event.key];
    if (to !== undefined) this.choose(Math.max(0, Math.min(this.count - 1, to)));
    else if (event.key === "Enter" && row) this.options.enter?.(row, at);
    else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && row && this.options.tree && this.options.toggle) {
      const { open, leaf, depth } = this.options.tree(row), wants = event.key === "ArrowRight";
      if (!leaf && open !== wants) this.options.toggle(row, at, wants);
      else if (wants && open) this.choose(at + 1);
      else if (!wants) {
        for (let i = at - 1; i >= 0; i--) {
          const up = this.rows[i];
          if (up && this.options.tree(up).depth < depth) { this.choose(i); break; }
        }
      }
    } else if (event.key === "Escape" && at >= 0) {
      this.chosen = -1;
      this.draw();
      this.box.dispatchEvent(new CustomEvent("unchosen"));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  close() {
    this.watch.disconnect();
    removeEventListener("beforeprint", this.paper);
    removeEventListener("afterprint", this.screen);
  }
}

/** @param {Column<any>} column */
const classes = (column) => `${column.left ? "left" : "right"}${column.narrow ? "" : " wide-only"}${column.roomy ? " roomy" : ""}`;

/**
 * A plain table, of what is short.
 * @template R
 * @param {string} label @param {Column<R>[]} columns @param {R[]} rows @param {(row: R) => string} name
 */
export function table(label, columns, rows, name) {
  return h("table", { "aria-label": label },
    h("thead", null, h("tr", null, ...columns.map((one) => h("th", { scope: "col", class: classes(one), title: one.hint }, one.title)))),
    h("tbody", null, ...rows.map((row) => {
      const line = h("tr", null, ...columns.map((one) => {
        const cell = h("td", { class: classes(one) }, one.cell(row));
        cell.dataset.col = one.id;
        const value = one.value?.(row);
        if (value !== undefined && value !== null) cell.dataset.value = String(value);
        return cell;
      }));
      line.dataset.name = name(row);
      return line;
    })));
}
