/* Requests to the server: with a key where it wants one, again where it is busy or does not answer. */

import { byId, make } from "./element.js";
import { say, told } from "./say.js";

const BASE = new URL("../../", import.meta.url);
const EVERY = 1000; // ms between two looks whether the server is back
const LONGEST = 60; // seconds that a busy server is waited for; a limit of requests is that of a minute

// What the server refused, in its own words.
export class Refused extends Error {
  constructor(message, { status, code = "", retryAfter = null }) {
    super(message);
    Object.assign(this, { status, code, retryAfter });
  }
}

export const connection = new EventTarget(); // tells "back" after the server was away, "key" after a key was given late

export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

export function tell(text, ...more) {
  byId("status").replaceChildren(text, ...more);
  byId("status").hidden = !text;
}

/* The key of the server, kept as long as this tab */

let key = null;
let asking = null; // the dialog that is open, as a promise
let isDeclined = false; // whether it was closed without a key: then a button asks again

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

// Whether there is a new key by now.
async function newKey() {
  if (isDeclined) return false;
  asking ??= import("./key.js").then(({ askForKey }) => askForKey(keyOf() !== null));
  try {
    const given = await asking;
    if (given) rememberKey(given);
    else offerKey();
    return Boolean(given);
  } finally {
    asking = null;
  }
}

function offerKey() {
  isDeclined = true;
  tell(say("key-missing"), " ", make("button", { type: "button", class: "plain", id: "give-key", click: askAgain }, say("key-give")));
}

async function askAgain() {
  isDeclined = false;
  tell("");
  if (await newKey()) connection.dispatchEvent(new Event("key"));
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
  let text = typeof message === "string" && message ? told(`code-${code}`, message) : say("refused", { status: response.status });
  if (response.status === 401) text = say(keyOf() ? "key-unknown" : "key-missing"); // the server's words are for programs
  return new Refused(text, { status: response.status, code, retryAfter });
}

/* A server that is busy, or a key that has asked too often, is left in peace by all requests of the page. */

let freeAt = 0; // when it may be asked again

function hold({ code, retryAfter }) {
  const mine = keyOf() ? "key-limit" : "own-limit";
  tell(say(code === "rate_limited" ? mine : "busy", { seconds: Math.ceil(retryAfter) }));
  const until = performance.now() + 1000 * retryAfter;
  freeAt = Math.max(freeAt, until);
  setTimeout(() => freeAt <= until && !away && tell(""), 1000 * retryAfter);
}

async function untilFree(signal) {
  while (freeAt > performance.now()) await pause(freeAt - performance.now(), signal);
}

// The answer to a request; where the server is away or busy, when it can give one.
export async function request(path, body, signal) {
  for (;;) {
    await untilFree(signal);
    signal?.throwIfAborted();
    const response = await reached(path, body, signal);
    if (response.ok) return response;
    const refused = await refusalOf(response);
    if (refused.status === 401 && (await newKey())) signal?.throwIfAborted();
    else if (refused.retryAfter !== null && refused.retryAfter <= LONGEST) hold(refused);
    else throw refused;
  }
}

export const ask = async (path, body, signal) => (await request(path, body, signal)).json();
