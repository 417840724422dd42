/* Requests to the server: with a key where it wants one, again where it is busy or does not answer. */

import { byId } from "./element.js";
import { say, told } from "./say.js";

const BASE = new URL("../../", import.meta.url);
const EVERY = 1000; // ms between two looks whether the server is back
const LONGEST = 30; // seconds that a busy server is waited for

// What the server refused, in its own words.
export class Refused extends Error {
  constructor(message, { status, code = "", retryAfter = null }) {
    super(message);
    Object.assign(this, { status, code, retryAfter });
  }
}

export const connection = new EventTarget(); // tells "back" after the server was away

export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

export function tell(text) {
  byId("status").textContent = text;
  byId("status").hidden = !text;
}

/* The key of the server, kept as long as this tab */

let key = null;
let asking = null; // the dialog that is open, as a promise

function keyOf() {
  try {
    return key ?? sessionStorage.getItem("weft-key");
  } catch {
    return key;
  }
}

function rememberKey(value) {
  key = value;
  try {
    sessionStorage.setItem("weft-key", value);
  } catch {
    // it lasts as long as the page
  }
}

async function newKey() {
  asking ??= import("./key.js").then(({ askForKey }) => askForKey(keyOf() !== null));
  try {
    const given = await asking;
    if (given) rememberKey(given);
    return Boolean(given);
  } finally {
    asking = null;
  }
}

/* One request */

function fetched(path, body, signal) {
  const headers = { Accept: "application/json" };
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  if (keyOf()) headers.Authorization = `Bearer ${keyOf()}`;
  const method = body === undefined ? "GET" : "POST";
  return fetch(new URL(path, BASE), { method, headers, body: isForm ? body : JSON.stringify(body), signal, cache: "no-store" });
}

let away = null; // while the server does not answer: a promise that it is back

function untilBack() {
  away ??= (async () => {
    tell(say("stopped"));
    for (;;) {
      await pause(EVERY);
      const answer = await fetch(new URL("health", BASE), { cache: "no-store" }).catch(() => null);
      if (answer) break;
    }
    away = null;
    tell("");
    connection.dispatchEvent(new Event("back"));
  })();
  return away;
}

async function reached(path, body, signal) {
  for (;;) {
    try {
      return await fetched(path, body, signal);
    } catch (error) {
      if (signal?.aborted) throw error;
      await untilBack();
      signal?.throwIfAborted();
    }
  }
}

// The reason of a refusal, in whatever shape the route has.
async function refusalOf(response) {
  const said = await response.json().catch(() => ({}));
  const error = said.error ?? said;
  const message = typeof error === "string" ? error : (error.message ?? said.detail);
  const wait = Number.parseFloat(response.headers.get("Retry-After"));
  const code = error.code ?? said.code;
  const retryAfter = Number.isFinite(wait) ? wait : code === "stopping" ? 1 : null;
  const text = typeof message === "string" && message ? told(`code-${code}`, message) : say("refused", { status: response.status });
  return new Refused(text, { status: response.status, code, retryAfter });
}

async function waitFor(seconds, signal) {
  tell(say("busy", { seconds: Math.ceil(seconds) }));
  try {
    await pause(1000 * seconds, signal);
  } finally {
    tell("");
  }
}

// The answer to a request; where the server is away or busy, when it can give one.
export async function request(path, body, signal) {
  for (;;) {
    const response = await reached(path, body, signal);
    if (response.ok) return response;
    const refused = await refusalOf(response);
    if (refused.status === 401 && (await newKey())) signal?.throwIfAborted();
    else if (refused.retryAfter !== null && refused.retryAfter <= LONGEST) await waitFor(refused.retryAfter, signal);
    else throw refused;
  }
}

export const ask = async (path, body, signal) => (await request(path, body, signal)).json();
