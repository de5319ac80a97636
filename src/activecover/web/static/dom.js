// Small helpers: elements without markup, so that contents are always text; requests; words to the user.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function s(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children.flat(9));
  return element;
}

export const number = (value) => Number(value).toLocaleString("en");
export const percent = (value) => `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)} %`;

export function say(text) {
  document.getElementById("said").textContent = text;
}

let gone;
export function notice(text) {
  const box = document.getElementById("notice");
  box.textContent = text;
  clearTimeout(gone);
  gone = setTimeout(() => (box.textContent = ""), 7000);
}

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? `the server says ${status}`);
    this.status = status;
  }
}

// A random name for a request; crypto.randomUUID is missing on pages that are not served over TLS.
export function requestKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Asks for a token until the server knows it. The server answers with a session in a cookie that no script can read.
let asking = null;
function signIn(words) {
  const dialog = document.getElementById("token");
  const field = document.getElementById("token-value");
  const wrong = document.getElementById("token-wrong");
  document.getElementById("token-words").textContent = words;
  wrong.textContent = "";
  field.value = "";
  // There is nothing behind it yet to go back to.
  dialog.addEventListener("close", () => dialog.showModal());
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = field.value.trim();
    if (!token) return field.focus();
    wrong.textContent = "";
    try {
      // A header holds no more than these; whatever else was typed is no token.
      if (!/^[\x21-\x7e]+$/.test(token)) throw new Error("That token is not valid.");
      const answer = await fetch("/api/login", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
      if (answer.ok) return location.reload();
      const said = (await answer.json().catch(() => null))?.detail;
      throw new Error(answer.status === 401 ? "That token is not valid." : said ? `${said[0].toUpperCase()}${said.slice(1)}.` : `The server says ${answer.status}.`);
    } catch (reason) {
      wrong.textContent = reason instanceof TypeError ? "The server does not answer." : reason.message;
      field.select();
      field.focus();
    }
  });
  dialog.showModal();
  // The page is loaded anew once the token is known.
  return new Promise(() => {});
}

function whySignIn(detail) {
  if (new URLSearchParams(location.search).get("link") === "old") return "That link is no longer good. Use the one that the server printed when it was last started, or sign in with your token.";
  return detail?.includes("session") ? "Your session has ended. Sign in again with your token." : "Sign in with your token.";
}

// A request. What changes something bears a name, and is made again under it when there is no answer.
export async function fetchFrom(path, { method = "GET", body, raw, headers = {}, signal } = {}) {
  const all = { ...headers };
  if (body !== undefined) all["Content-Type"] = "application/json";
  if (raw !== undefined) all["Content-Type"] = "application/octet-stream";
  if (method === "POST") all["Idempotency-Key"] = requestKey();
  for (let attempt = 0; ; attempt += 1) {
    let answer;
    try {
      answer = await fetch(path, { method, headers: all, body: raw ?? (body === undefined ? undefined : JSON.stringify(body)), signal });
    } catch (wrong) {
      if (signal?.aborted || attempt >= 8) throw wrong;
      if (attempt === 1) notice("The server does not answer; trying again. Nothing is lost.");
      await pause(Math.min(250 * 2 ** attempt, 4000));
      continue;
    }
    if (answer.status === 401) {
      const said = await answer.json().catch(() => null);
      await (asking ??= signIn(whySignIn(said?.detail)));
    }
    if ([502, 503, 504].includes(answer.status) && attempt < 5) {
      await pause(250 * 2 ** attempt);
      continue;
    }
    if (answer.status >= 400) throw new Problem(answer.status, await answer.json().catch(() => null));
    return answer;
  }
}

export async function get(path, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  return (await fetchFrom(query.size ? `${path}?${query}` : path)).json();
}

export const post = async (path, body) => (await fetchFrom(path, { method: "POST", body })).json();

// Asks every so often, and calls back only when something has changed.
export function watch(path, back, seconds = 2) {
  let tag, stopped = false, timer;
  const look = async () => {
    try {
      if (!document.hidden || tag === undefined) {
        const answer = await fetchFrom(path, { headers: tag ? { "If-None-Match": tag } : {} });
        if (stopped) return;
        if (answer.status !== 304) {
          tag = answer.headers.get("ETag");
          back(await answer.json());
        }
      }
    } catch (wrong) {
      if (!stopped) notice(wrong.message);
    }
    if (!stopped) timer = setTimeout(look, 1000 * seconds);
  };
  look();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

export async function download(path, named) {
  const answer = await fetchFrom(path);
  const name = named ?? /filename\*?=(?:UTF-8'')?"?([^";]+)/i.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? "file";
  const address = URL.createObjectURL(await answer.blob());
  h("a", { href: address, download: decodeURIComponent(name) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
