// The frame of the page: which view, which campaign, who.
import { get, h, notice } from "./dom.js";
import * as campaigns from "./campaigns.js";
import * as history from "./history.js";
import * as label from "./label.js";
import * as map from "./map.js";
import * as progress from "./progress.js";
import * as setup from "./setup.js";

// Which views are for whom: nobody is shown a door that is locked.
const VIEWS_OF = {
  reader: ["progress", "map", "history", "campaigns"],
  annotator: ["label", "campaigns"],
  adjudicator: ["label", "progress", "map", "history", "campaigns"],
  owner: ["label", "progress", "map", "history", "campaigns"],
};
const VIEWS = { label: ["Label", label], progress: ["Progress", progress], map: ["Map", map], history: ["History", history], setup: ["Set up", setup], campaigns: ["Campaigns", campaigns] };
const ALONE = ["setup", "campaigns"];
const main = document.getElementById("main");
const picker = document.getElementById("campaign");
const whoami = document.getElementById("who");

let me = { name: null, role: "owner", rights: {} };
// What one may do in each campaign, as the server said last.
let roles = {};
whoami.value = localStorage.getItem("who") ?? "me";
const who = () => me.name ?? (whoami.value.trim() || "me");
const mine = (campaign) => {
  const views = VIEWS_OF[roles[campaign] ?? me.role] ?? ["campaigns"];
  return me.role === "owner" ? Object.keys(VIEWS) : views;
};
whoami.addEventListener("change", () => {
  localStorage.setItem("who", who());
  render();
});

const go = (view, campaign) => {
  const address = ALONE.includes(view) ? `#/${view}` : `#/${view}/${encodeURIComponent(campaign)}`;
  if (location.hash === address) render();
  else location.hash = address;
};

function where() {
  const [, view = "", name = ""] = location.hash.split("/");
  const campaign = decodeURIComponent(name);
  return { view: mine(campaign).includes(view) ? view : "campaigns", campaign };
}

async function refresh() {
  const { campaigns } = await get("/api/campaigns");
  const names = campaigns.map((one) => one.name);
  roles = Object.fromEntries(campaigns.map((one) => [one.name, one.role]));
  const { campaign } = where();
  picker.replaceChildren(...(names.length ? names : ["no campaign"]).map((name) => h("option", { value: name, selected: name === campaign }, name)));
  picker.disabled = !names.length;
  links();
  return names;
}

function links() {
  const { view, campaign } = where();
  const name = campaign || (picker.disabled ? "" : picker.value);
  document.getElementById("views").replaceChildren(...mine(name).map((key) => {
    const [title] = VIEWS[key];
    const alone = ALONE.includes(key);
    return h("a", { href: alone ? `#/${key}` : `#/${key}/${encodeURIComponent(name)}`, "aria-current": key === view ? "page" : null, "aria-disabled": !alone && !name ? "true" : null }, title);
  }));
}

let leave = () => {};
async function render() {
  leave();
  leave = () => {};
  try {
    const names = await refresh();
    const { view, campaign } = where();
    document.title = `${VIEWS[view][0]}${campaign ? ` · ${campaign}` : ""} · activecover`;
    if (!ALONE.includes(view) && !names.includes(campaign)) return go("campaigns");
    leave();
    leave = VIEWS[view][1].show(main, { campaign, who, go, refresh, role: roles[campaign] ?? me.role, first: (name) => mine(name)[0], all: me.role === "owner" }) ?? (() => {});
  } catch (wrong) {
    notice(wrong.message);
  }
}

picker.addEventListener("change", () => {
  const { view } = where(), views = mine(picker.value);
  go(ALONE.includes(view) || !views.includes(view) ? views[0] : view, picker.value);
});
addEventListener("hashchange", render);
document.getElementById("leave").addEventListener("click", async () => {
  await fetch("/api/logout", { method: "POST" });
  location.reload();
});

// The server knows those who have a token of their own by name; others say who they are.
async function begin() {
  try {
    me = await get("/api/me");
  } catch (wrong) {
    return notice(wrong.message);
  }
  whoami.parentElement.hidden = me.name !== null;
  document.getElementById("known").hidden = me.name === null;
  document.getElementById("known").textContent = me.name ?? "";
  document.getElementById("leave").hidden = !me.session;
  render();
}
begin();
