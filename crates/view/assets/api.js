// Questions to the server: the token, errors as sentences, and panels that have one question in
// flight at most. The answers are described in ../API.md.

import { answered } from "./dom.js";

const KEY = "tare-token";
let token = sessionStorage.getItem(KEY) || "";
let pending = 0;

/** @type {{lost: (error: ApiError) => void}} who is told when the server no longer knows us */
export const hooks = { lost: () => {} };

export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string | null} remedy */
  constructor(status, message, remedy) {
    super(message);
    this.status = status;
    this.remedy = remedy;
  }
}

export const hasToken = () => token !== "";

/** Trades the one-time code of the link for a token. @param {string} code */
export async function login(code) {
  const answer = await fetch("/api/login", { method: "POST", body: JSON.stringify({ code }),
    headers: { "Content-Type": "application/json" } });
  if (!answer.ok) throw await failure(answer);
  token = (await answer.json()).token;
  sessionStorage.setItem(KEY, token);
}

/** @param {Response} answer */
async function failure(answer) {
  let body = { error: `The server answered ${answer.status}.`, remedy: null };
  try { body = await answer.json(); } catch { /* not ours: the sentence above stays */ }
  return new ApiError(answer.status, body.error, body.remedy);
}

/** @param {string} path @param {AbortSignal} [signal] @param {string} [body] what is posted */
export async function raw(path, signal, body) {
  for (let tries = 0; ; tries++) {
    let answer;
    try {
      answer = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, signal, cache: "no-store", body, method: body === undefined ? "GET" : "POST" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "Tare does not answer: its process has ended, or was stopped.",
        "Start `tare view` again and open the link that it prints.");
    }
    if (answer.ok) return answer;
    if (answer.status === 503 && tries < 5) {
      await new Promise((done) => setTimeout(done, 1000));
      continue;
    }
    const error = await failure(answer);
    if (error.status === 401) hooks.lost(error);
    throw error;
  }
}

/** @param {string} path @param {URLSearchParams | string} [query] @param {AbortSignal} [signal] */
export async function get(path, query, signal) {
  pending++;
  try {
    const text = query ? String(query) : "";
    return await (await raw(`/api/${path}${text ? `?${text}` : ""}`, signal)).json();
  } finally { pending--; }
}

/** Has something done. @param {string} path @param {Record<string, any>} what */
export async function post(path, what) {
  pending++;
  try {
    return await (await raw(`/api/${path}`, undefined, JSON.stringify(what))).json();
  } finally { pending--; }
}

/** @param {string} path @param {URLSearchParams | string} query @param {AbortSignal} [signal] */
export async function getBytes(path, query, signal) {
  pending++;
  try {
    return await (await raw(`/api/${path}?${query}`, signal)).arrayBuffer();
  } finally { pending--; }
}

/** When nothing is in flight and what came is painted. */
export async function idle() {
  const frame = () => new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 100); });
  for (let calm = 0; calm < 3;) {
    await frame();
    calm = pending === 0 && !document.querySelector("[data-loading]") ? calm + 1 : 0;
  }
}

/**
 * Part of a page that asks and draws. A new question replaces the one in flight; the tick's question
 * waits for it instead, so no queue can grow.
 * @template T
 */
export class Panel {
  /** @param {HTMLElement} host @param {(signal: AbortSignal) => Promise<T>} load @param {(answer: T) => void} draw */
  constructor(host, load, draw) {
    this.host = host;
    this.load = load;
    this.draw = draw;
    /** @type {AbortController | null} */
    this.flight = null;
    /** @type {HTMLElement | null} */
    this.problem = null;
  }

  /** @param {"view" | "epoch"} [why] */
  async ask(why = "view") {
    if (this.flight && why === "epoch") return;
    this.flight?.abort();
    const flight = this.flight = new AbortController();
    this.host.dataset.loading = "1";
    const slow = setTimeout(() => this.host.classList.add("slow"), 200);
    try {
      const answer = await this.load(flight.signal);
      if (this.flight !== flight) return;
      this.problem?.remove();
      this.problem = null;
      const back = place(this.host);
      this.draw(answer);
      back();
      if (!this.host.closest("#strip")) answered();
    } catch (error) {
      if (this.flight !== flight || flight.signal.aborted) return;
      // A tick's failure leaves what is there: the head of the page says what is wrong.
      if (why === "view" || !(error instanceof ApiError && error.status === 0)) this.fail(error);
    } finally {
      clearTimeout(slow);
      if (this.flight === flight) {
        this.flight = null;
        this.host.classList.remove("slow");
        delete this.host.dataset.loading;
      }
    }
  }

  /** @param {unknown} error */
  fail(error) {
    answered();
    if (!(error instanceof ApiError)) console.error(error);
    this.problem?.remove();
    this.problem = problem(error, () => this.ask());
    this.host.prepend(this.problem);
  }

  stop() {
    this.flight?.abort();
    this.flight = null;
    delete this.host.dataset.loading;
  }
}

/**
 * Where the reader is in a part that is drawn anew: what has the focus, by its name, and what is open.
 * @param {HTMLElement} host
 */
function place(host) {
  const name = (/** @type {Element} */ one) => one.getAttribute("aria-label") || one.textContent;
  const active = document.activeElement, held = active && active !== host && host.contains(active) ? name(active) : null;
  const open = [...host.querySelectorAll("details")].map((one) => one.open);
  return () => {
    host.querySelectorAll("details").forEach((one, i) => { one.open = open[i] || false; });
    if (!held || active?.isConnected) return;
    const again = /** @type {HTMLElement[]} */ ([...host.querySelectorAll("button, a, summary")]).find((one) => name(one) === held);
    again?.focus({ preventScroll: true });
  };
}

/** A sentence where the answer would be. @param {unknown} error @param {() => void} again */
function problem(error, again) {
  const box = document.createElement("div"), text = document.createElement("p");
  box.className = "problem";
  box.setAttribute("role", "alert");
  text.textContent = error instanceof Error ? error.message : String(error);
  box.append(text);
  if (error instanceof ApiError && error.remedy) {
    const remedy = document.createElement("p");
    remedy.className = "dim";
    remedy.textContent = error.remedy;
    box.append(remedy);
  }
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Ask again";
  button.addEventListener("click", again);
  box.append(button);
  return box;
}
