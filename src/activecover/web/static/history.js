// History: search decisions, change one, resolve conflicts, export.
import { download, get, h, notice, number, post, say } from "./dom.js";
import { body, excerpt } from "./item.js";

const PAGE = 50;
const STATES = { positive: "yes", negative: "no", unsure: "unsure", skipped: "soft", leased: "soft", waiting: "soft", conflict: "unsure" };
const NAMES = { positive: "yes", negative: "no", unsure: "not sure", skipped: "skipped", leased: "on a table", waiting: "waits for others", conflict: "conflict" };

export function show(root, { campaign, who, role }) {
  const reads = role === "reader";
  const path = `/api/campaigns/${encodeURIComponent(campaign)}`;
  const search = h("input", { type: "search", placeholder: "id, text, person, note", "aria-label": "Search decisions", oninput: () => later() });
  const state = h("select", { "aria-label": "Which decisions", onchange: () => load(0) }, h("option", { value: "" }, "all"), Object.entries(NAMES).map(([value, name]) => h("option", { value }, name)));
  const format = h("select", { "aria-label": "File format" }, ["csv", "jsonl", "parquet"].map((name) => h("option", {}, name)));
  const which = h("select", { "aria-label": "Which labels" }, [["labelled", "all labels"], ["positive", "positives"], ["all", "every item"]].map(([value, name]) => h("option", { value }, name)));
  const exporting = h("button", { onclick: () => download(`${path}/export?format=${format.value}&which=${which.value}`).catch((wrong) => notice(wrong.message)) }, "Export");
  const table = h("div", { class: "sheet wide-table" });
  const pages = h("div", { class: "row" });
  const disputes = h("div");
  root.replaceChildren(
    h("div", { class: "row spread" }, h("h1", {}, "History"), h("div", { class: "row" }, which, format, exporting)),
    disputes, h("div", { class: "row", role: "search" }, search, state), h("p"), table, h("p"), pages);

  let timer, ended = false;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => load(0), 200);
  };

  async function act(does, words) {
    try {
      await does();
      say(words);
      await load(shown);
    } catch (wrong) {
      notice(wrong.message);
    }
  }
  const toSettle = (title, found) => (found.length ? [h("h2", {}, `${number(found.length)} ${title}`), ...found.slice(0, 20).map(({ item, words, acts }) =>
    h("section", { class: "sheet settle", "aria-label": `${item.id}, ${title}` }, body(item), h("p", { class: "small" }, words),
      !reads && h("div", { class: "row" }, acts.map(([name, does, done]) => h("button", { onclick: () => act(does, done) }, name)))))] : []);
  // What was decided between people who disagreed is decided again.
  const change = (item, label) => act(() => item.judge !== null
    ? post(`${path}/adjudicate`, { id: item.id, label, by: who() })
    : post(`${path}/tell`, { ids: item.id, labels: label, by: item.opinions && who() in item.opinions ? who() : item.by, change: true }), `${item.id} is now ${label ? "yes" : "no"}`);

  let shown = 0;
  async function load(offset) {
    shown = offset;
    try {
      const { total, items } = await get(`${path}/items`, { search: search.value, state: state.value, offset, limit: PAGE });
      const { conflicts } = await get(`${path}/conflicts`);
      if (ended) return;
      table.replaceChildren(items.length ? h("table", { class: "stack" },
        h("thead", {}, h("tr", {}, ["Item", "Content", "Decision", "By", ""].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, items.map((item) => h("tr", { "data-id": item.id },
          h("td", { class: "id", title: item.id }, item.id), h("td", { class: "text small" }, excerpt(item), item.note && h("div", { class: "soft" }, `note: ${item.note}`)),
          h("td", { class: STATES[item.state] }, NAMES[item.state]), h("td", {}, Object.keys(item.opinions ?? {}).join(", ") || item.by),
          h("td", {}, !reads && ["positive", "negative"].includes(item.state) && h("button", { class: "small", onclick: () => change(item, item.state !== "positive"), "aria-label": `Change ${item.id} to ${item.state === "positive" ? "no" : "yes"}` }, item.state === "positive" ? "Change to no" : "Change to yes")))))) : h("p", { class: "soft" }, "Nothing found."));
      pages.replaceChildren(
        h("span", { class: "soft small" }, `${number(total)} items`),
        ...(offset > 0 ? [h("button", { class: "small", onclick: () => load(offset - PAGE) }, "Newer")] : []),
        ...(offset + PAGE < total ? [h("button", { class: "small", onclick: () => load(offset + PAGE) }, "Older")] : []));
      const { suspicious } = await get(`${path}/suspicious`);
      disputes.replaceChildren(
        ...toSettle("in conflict", conflicts.map(({ item, opinions }) => ({
          item, words: Object.entries(opinions).map(([name, yes]) => `${name}: ${yes ? "yes" : "no"}`).join(" · "),
          acts: [true, false].map((label) => [label ? "Decide yes" : "Decide no", () => post(`${path}/adjudicate`, { id: item.id, label, by: who() }), `${item.id}: decided`]),
        }))),
        ...toSettle("for a second look", suspicious.map(({ item, reason }) => ({
          item, words: `Labelled yes, but ${reason}.`,
          acts: [["It is positive", () => post(`${path}/confirm`, { ids: item.id, by: who() }), `${item.id}: confirmed`], ["Change to no", () => post(`${path}/tell`, { ids: item.id, labels: false, by: who(), change: true }), `${item.id} is now no`]],
        }))));
    } catch (wrong) {
      notice(wrong.message);
    }
  }
  load(0);
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
