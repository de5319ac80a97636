// Campaigns: the list, archives, restoring one.
import { download, fetchFrom, get, h, notice, number, post } from "./dom.js";

export function show(root, { go, refresh, first, all: owner }) {
  const list = h("div");
  const file = h("input", { type: "file", accept: ".zip", class: "unseen", id: "archive", onchange: () => file.files[0] && restore(file.files[0]) });
  root.replaceChildren(
    h("div", { class: "row spread" }, h("h1", {}, "Campaigns"),
      owner && h("div", { class: "row" }, h("label", { for: "archive", class: "button" }, "Restore an archive"), file, h("button", { class: "primary", onclick: () => go("setup") }, "New campaign"))),
    h("p"), list);

  async function restore(chosen) {
    try {
      const { upload } = await (await fetchFrom(`/api/uploads?name=${encodeURIComponent(chosen.name)}`, { method: "POST", raw: chosen })).json();
      await post("/api/restore", { upload });
      await load();
    } catch (wrong) {
      notice(wrong.message);
    }
  }

  async function remove(name) {
    if (prompt(`This removes ${name} and its labels for good. Download the archive first. Type the name to go on:`) !== name) return;
    try {
      await fetchFrom(`/api/campaigns/${encodeURIComponent(name)}?confirm=${encodeURIComponent(name)}`, { method: "DELETE" });
      await load();
    } catch (wrong) {
      notice(wrong.message);
    }
  }

  async function load() {
    try {
      const names = await refresh();
      const { campaigns } = await get("/api/campaigns");
      const about = (counts) => (counts ? `${number(counts.rows)} items · ${number(counts.positive)} yes · ${number(counts.negative)} no` : "");
      list.replaceChildren(names.length
        ? h("div", { class: "sheet wide-table" }, h("table", { class: "stack" }, h("tbody", {}, campaigns.map(({ name, role, counts }) =>
          h("tr", {}, h("td", { class: "text" }, h("a", { href: `#/${first(name)}/${encodeURIComponent(name)}` }, name)), h("td", { class: "soft small" }, about(counts)),
            role === "owner" && h("td", {}, h("div", { class: "row" }, h("button", { class: "small", onclick: () => download(`/api/campaigns/${encodeURIComponent(name)}/archive`).catch((wrong) => notice(wrong.message)) }, "Archive"),
              h("button", { class: "small", onclick: () => remove(name), "aria-label": `Remove ${name}` }, "Remove"))))))))
        : h("div", { class: "sheet empty" }, h("h2", {}, "No campaign yet"), h("p", { class: "soft" }, owner ? "Drop a table, vectors or images, and begin to label." : "An owner has to set one up, or to let you into one."), owner && h("button", { class: "primary", onclick: () => go("setup") }, "Set one up")));
    } catch (wrong) {
      notice(wrong.message);
    }
  }
  load();
  return () => {};
}
