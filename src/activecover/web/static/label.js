// Label: one item at a time, or ten in a list. No request stands between a key and the next item.
import { get, h, notice, number, post, say } from "./dom.js";
import { body, reason } from "./item.js";

const KEYS = { y: "yes", ArrowRight: "yes", n: "no", ArrowLeft: "no", "?": "unsure", q: "unsure", s: "skip", ArrowDown: "skip", u: "undo", z: "undo", Backspace: "undo", ArrowUp: "undo", l: "list" };
const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

export function show(root, { campaign, who }) {
  let list = sessionStorage.getItem("list") === "1";
  let inner = null;
  const begin = () => {
    inner?.();
    inner = (list ? showList : showOne)(root, campaign, who, () => {
      list = !list;
      sessionStorage.setItem("list", list ? "1" : "0");
      begin();
    });
  };
  begin();
  return () => inner?.();
}

function tally() {
  const line = h("p", { class: "tally" });
  const set = (counts) => {
    if (!counts) return;
    const done = counts.positive + counts.negative;
    const aside = counts.skipped + counts.unsure;
    const parts = [[counts.positive, "positive"], [counts.negative, "negative"], [aside, "aside"], [counts.rows - done, "to go"]];
    line.replaceChildren(...parts.filter(([value, name]) => value || name !== "aside").map(([value, name]) => h("span", {}, h("b", {}, number(value)), ` ${name}`)));
  };
  return { line, set };
}

// One item with its nearest positive beside it, ready to be shown.
function desk(item) {
  const terms = item.view.terms, why = reason(item);
  const article = h("article", { class: "sheet item", tabindex: "-1", "aria-label": `Item ${item.id}`, "data-id": item.id },
    why && h("p", { class: "why" }, why), body(item, terms), h("p", { class: "name" }, item.id, item.duplicates.length > 0 && ` · and ${number(item.duplicates.length)} like it`));
  const beside = item.beside && h("aside", { class: "sheet beside", "aria-label": "The nearest positive" },
    h("h2", {}, "Nearest positive"), body(item.beside, terms), h("p", { class: "name" }, item.beside.id));
  return h("div", { class: beside ? "desk" : "desk alone", hidden: true }, article, beside);
}

function showOne(root, campaign, who, other) {
  const path = `/api/campaigns/${encodeURIComponent(campaign)}`;
  const counts = tally();
  const stage = h("div");
  const answers = h("div", { class: "answers", role: "group", "aria-label": "Your answer" },
    h("button", { class: "yes", onclick: () => press("yes") }, "Yes ", h("kbd", {}, "y")),
    h("button", { class: "no", onclick: () => press("no") }, "No ", h("kbd", {}, "n")),
    h("button", { onclick: () => press("unsure") }, "Not sure ", h("kbd", {}, "?")),
    h("button", { onclick: () => press("skip") }, "Skip ", h("kbd", {}, "s")),
    h("button", { class: "undo", onclick: () => press("undo") }, "Undo ", h("kbd", {}, "u")));
  root.replaceChildren(
    h("div", { class: "row spread" }, counts.line, h("button", { class: "small", onclick: other }, "List of ten ", h("kbd", { class: "hide-small" }, "l"))),
    stage, answers);

  let current = null; // what is on the screen
  let foreseen = {}; // what comes next, by answer
  let pending = []; // answers that the server has not confirmed yet
  let working = false, ended = false;
  window.activecoverLatency = [];

  function display(item, stopped) {
    current = item;
    foreseen = {};
    answers.hidden = !item && Boolean(stopped);
    if (!item) {
      stage.replaceChildren(h("div", { class: "desk alone" }, stopped
        ? h("div", { class: "sheet empty", id: "stopped" }, h("h1", {}, "Nothing to decide on now"), h("p", { class: "soft" }, stopped), h("button", { onclick: begin }, "Look again"), " ", h("button", { onclick: () => press("undo") }, "Undo the last answer"))
        : h("article", { class: "sheet item", "aria-busy": "true", "aria-label": "Loading" })));
      if (stopped) say(`Nothing to decide on now: ${stopped}`);
      return;
    }
    // What was foreseen is there already, pictures and frames loaded: the rest goes.
    const ready = item.desk ?? desk(item);
    for (const child of [...stage.children]) if (child !== ready) child.remove();
    if (!ready.isConnected) stage.append(ready);
    ready.hidden = false;
    if (!typing(document.activeElement ?? document.body)) ready.querySelector("article").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  // Finds what comes next for each answer. Where that depends on what other people do, another item is taken
  // besides this one, so that it is there whatever the answer.
  async function foresee() {
    const item = current;
    if (!item || pending.length) return;
    try {
      let found = await get(`${path}/ahead`, { id: item.id });
      if (!found.yes && !found.no && current === item && !pending.length) {
        const { items } = await post(`${path}/ask`, { k: 2, by: who() });
        const next = items[0]?.id === item.id ? items[1] : null;
        found = { yes: next, no: next, aside: next };
      }
      if (current !== item || pending.length || ended) return;
      const desks = new Map();
      for (const next of Object.values(found).filter(Boolean)) {
        if (!desks.has(next.id)) desks.set(next.id, stage.appendChild(desk(next)));
        next.desk = desks.get(next.id);
      }
      foreseen = found;
    } catch { /* then the next item comes with the answer */ }
  }

  function press(what) {
    if (what === "list") return other();
    if (what !== "undo" && !current) return;
    const started = performance.now();
    const next = { yes: foreseen.yes, no: foreseen.no, unsure: foreseen.aside, skip: foreseen.aside }[what];
    pending.push({ what, item: current, shown: next?.id });
    display(next ?? null);
    if (next) requestAnimationFrame(() => window.activecoverLatency.push(performance.now() - started));
    say({ yes: "Yes", no: "No", unsure: "Not sure", skip: "Skipped", undo: "Undone" }[what]);
    work();
  }

  async function send({ what, item, shown }) {
    if (what === "yes" || what === "no") return post(`${path}/answer`, { id: item.id, label: what === "yes", by: who(), shown });
    if (what === "undo") {
      const { ids } = await post(`${path}/undo`, { count: 1, by: who() });
      if (!ids.length) notice("There is nothing to undo.");
    } else await post(`${path}/${what}`, { ids: item.id, by: who() });
    return post(`${path}/ask`, { by: who(), shown });
  }

  async function work() {
    if (working) return;
    working = true;
    while (pending.length && !ended) {
      let answer;
      try {
        answer = await send(pending[0]);
      } catch (wrong) {
        notice(wrong.message);
        pending = [];
        answer = await post(`${path}/ask`, { by: who() }).catch(() => null);
        if (!answer) break;
        pending.push(null);
      }
      pending.shift();
      const actual = answer.items[0] ?? null;
      counts.set(answer.counts);
      // An answer to an item that someone else got meanwhile is not sent.
      const dropped = pending.length && pending[0].what !== "undo" && pending[0].item?.id !== actual?.id;
      if (dropped) {
        pending = [];
        notice("Someone else has that item now: here is yours.");
      }
      if (!pending.length && (!current || current.id !== actual?.id)) display(actual, answer.stopped);
    }
    working = false;
    if (!ended) foresee();
  }

  async function begin() {
    display(null);
    try {
      const answer = await post(`${path}/ask`, { by: who() });
      if (ended) return;
      counts.set(answer.counts);
      display(answer.items[0] ?? null, answer.stopped);
      foresee();
    } catch (wrong) {
      notice(wrong.message);
    }
  }

  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || event.repeat) return;
    const what = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!what) return;
    // Long texts scroll with the arrows up and down.
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && document.documentElement.scrollHeight > innerHeight + 4) return;
    event.preventDefault();
    press(what);
  };
  document.addEventListener("keydown", onKey);
  begin();
  return () => {
    ended = true;
    document.removeEventListener("keydown", onKey);
  };
}

function showList(root, campaign, who, other) {
  const path = `/api/campaigns/${encodeURIComponent(campaign)}`;
  const counts = tally();
  const items = h("ol", { class: "ten", "aria-label": "Items to decide on" });
  const send = h("button", { class: "primary wide", onclick: () => finish() }, "Send ", h("kbd", { class: "hide-small" }, "Enter"));
  root.replaceChildren(
    h("div", { class: "row spread" }, counts.line, h("button", { class: "small", onclick: other }, "One at a time ", h("kbd", { class: "hide-small" }, "l"))),
    items, h("div", { class: "answers" }, h("button", { class: "wide", onclick: undo }, "Undo ", h("kbd", {}, "u")), send));
  let shown = [], chosen = new Map(), ended = false;

  const rows = () => [...items.children];
  function choose(place, answer) {
    const item = shown[place];
    if (chosen.get(item.id) === answer) chosen.delete(item.id);
    else chosen.set(item.id, answer);
    const row = rows()[place];
    const now = chosen.get(item.id);
    row.dataset.answer = now ?? "";
    for (const button of row.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.answer === now));
    say(`${item.id}: ${now ?? "no answer"}`);
  }

  function display(found, stopped) {
    [shown, chosen] = [found, new Map()];
    items.replaceChildren(...found.map((item, place) =>
      h("li", { class: "sheet", tabindex: place ? "-1" : "0", "data-id": item.id, "aria-label": `Item ${item.id}` },
        h("div", {}, body(item, item.view.terms), h("p", { class: "name" }, [item.id, reason(item)].filter(Boolean).join(" · "))),
        h("div", { class: "row" }, ["yes", "no", "unsure"].map((answer) =>
          h("button", { class: `small ${answer}`, tabindex: "-1", "data-answer": answer, "aria-pressed": "false", onclick: () => choose(place, answer) }, { yes: "Yes", no: "No", unsure: "Not sure" }[answer]))))));
    if (!found.length) items.replaceChildren(h("li", { class: "sheet empty" }, stopped ?? "Nothing is left to decide on."));
    send.disabled = !found.length;
    rows()[0]?.focus();
  }

  async function load() {
    try {
      const answer = await post(`${path}/ask`, { k: 10, by: who() });
      if (ended) return;
      counts.set(answer.counts);
      display(answer.items, answer.stopped);
    } catch (wrong) {
      notice(wrong.message);
    }
  }

  async function finish() {
    if (send.disabled) return;
    send.disabled = true;
    try {
      const told = [...chosen].filter(([, answer]) => answer !== "unsure");
      const unsure = [...chosen].filter(([, answer]) => answer === "unsure").map(([id]) => id);
      if (told.length) await post(`${path}/tell`, { ids: told.map(([id]) => id), labels: told.map(([, answer]) => answer === "yes"), by: who() });
      if (unsure.length) await post(`${path}/unsure`, { ids: unsure, by: who() });
      say(`${chosen.size} answers sent`);
      await load();
    } catch (wrong) {
      notice(wrong.message);
      send.disabled = false;
    }
  }

  async function undo() {
    const { ids } = await post(`${path}/undo`, { count: 1, by: who() }).catch((wrong) => (notice(wrong.message), { ids: [] }));
    say(ids.length ? `Undone: ${ids[0]}` : "There is nothing to undo");
    await load();
  }

  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const here = rows().indexOf(document.activeElement?.closest?.("ol.ten li"));
    const place = Math.max(here, 0);
    const go = (step) => {
      const next = rows()[Math.min(Math.max(place + step, 0), rows().length - 1)];
      next?.focus();
      next?.scrollIntoView({ block: "nearest" });
    };
    const answer = { y: "yes", n: "no", "?": "unsure", q: "unsure" }[event.key.toLowerCase()];
    if (answer && shown[place]) {
      if (chosen.get(shown[place].id) !== answer) choose(place, answer);
      go(1);
    } else if (event.key === "ArrowDown" || event.key === "j") go(1);
    else if (event.key === "ArrowUp" || event.key === "k") go(-1);
    else if (event.key === "Enter" && event.target.tagName !== "BUTTON") finish();
    else if (event.key === "u") undo();
    else if (event.key === "l") other();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  load();
  return () => {
    ended = true;
    document.removeEventListener("keydown", onKey);
  };
}
