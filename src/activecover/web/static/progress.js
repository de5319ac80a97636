// Progress: what was found for which effort, how much may be left, and who did what.
import { chart } from "./charts.js";
import { download, get, h, notice, number, percent, post, watch } from "./dom.js";

const tile = (value, name) => h("div", { class: "sheet tile" }, h("b", {}, value), h("span", {}, name));
const share = (value) => `${Math.round(100 * value)}%`;

export function show(root, { campaign, role }) {
  const path = `/api/campaigns/${encodeURIComponent(campaign)}`;
  const place = h("div", {}, h("p", { class: "soft" }, "Loading …"));
  const keep = h("button", { class: "small", onclick: () => download(`${path}/certificate`, `${campaign}-certificate.json`).catch((wrong) => notice(wrong.message)) }, "Certificate");
  const forgetting = h("div"), learner = h("div");
  root.replaceChildren(h("div", { class: "row spread" }, h("h1", {}, "Progress"), keep), place, learner, forgetting);
  if (role === "owner") get(`${path}/status`).then((status) => changer(path, status.learner)).then((made) => learner.replaceChildren(made)).catch((wrong) => notice(wrong.message));
  if (role === "owner") get(`${path}/forgetting`).then((stands) => stands.forgets && forgetting.replaceChildren(forgotten(path, forgetting, stands))).catch((wrong) => notice(wrong.message));
  return watch(`${path}/progress`, (data) => {
    // The certificate would say how many control items there were so far.
    keep.hidden = data.withheld !== null;
    place.replaceChildren(...draw(data));
  });
}

// The learner can be changed at any time; the labels stay.
async function changer(path, current) {
  // Owners of this campaign alone may not see the server's list: then a name is typed.
  const known = await get("/api/learners").catch(() => []);
  const name = h("span", { id: "learner" }, current);
  const to = known.length ? h("select", {}, known.map((one) => h("option", { value: one.name, title: one.summary }, one.name))) : h("input", { type: "text" });
  const change = async () => {
    try {
      name.replaceChildren((await post(`${path}/learner`, { learner: to.value })).learner);
      notice("The learner was changed.");
    } catch (wrong) {
      notice(wrong.message);
    }
  };
  return h("section", { class: "sheet", "aria-label": "Learner" }, h("h2", {}, "Learner"), h("p", {}, "Items are chosen by ", name, "."),
    h("div", { class: "row" }, h("label", {}, "Change it to ", to), h("button", { class: "small", id: "change-learner", onclick: change }, "Change")));
}

// What is forgotten, what is not yet and why; the last decisions can be forgotten too.
function forgotten(path, place, { forgotten: gone, final, kept }) {
  const reasons = Object.entries(kept).map(([why, ids]) => h("li", {}, `${number(ids.length)} kept: ${why}`));
  const again = async (now) => {
    if (now && !confirm("The last decisions can then no longer be undone. Forget them too?")) return;
    try {
      place.replaceChildren(forgotten(path, place, await post(`${path}/forget`, { now })));
    } catch (wrong) {
      notice(wrong.message);
    }
  };
  return h("section", { class: "sheet", "aria-label": "Forgetting" }, h("h2", {}, "Forgetting"),
    h("p", {}, `${number(gone)} negatives are forgotten, ${number(final.length)} are final and will be.`),
    reasons.length > 0 && h("ul", { class: "small" }, reasons),
    h("div", { class: "row" },
      h("button", { class: "small", disabled: !final.length, onclick: () => again(false) }, "Forget what is final"),
      h("button", { class: "small", id: "forget-now", onclick: () => again(true) }, "Forget now")));
}

const narrow = () => innerWidth < 740;

// What the campaign says of itself: that it has ended, what is certified, what it waits for.
function statements({ stopped, certificate, insurance, note }, positives) {
  return [
    stopped && h("p", { class: "sheet stop", id: "stopped", role: "status" }, h("b", {}, "Stop: "), `${stopped}. ${number(positives)} positives were found.`),
    certificate && h("p", { class: "sheet" }, h("b", {}, "Promised: "), certificate),
    insurance && h("p", { class: "sheet soft small" }, insurance),
    note && h("p", { class: "sheet soft" }, note),
  ];
}

function tiles({ labels, found, recent, bound, rows, withheld }) {
  const spent = labels.at(-1), positives = found.at(-1);
  const left = bound?.recall_estimate > 0 ? Math.max(0, Math.round(positives / bound.recall_estimate - positives)) : null;
  return h("div", { class: "tiles" },
    tile(number(positives), "positives found"),
    tile(number(spent), `labels spent of ${number(rows)}`),
    tile(spent ? percent(recent.at(-1)) : "–", "yes among the last hundred"),
    withheld && tile("–", `how much is found for certain: ${withheld}`),
    !withheld && tile(bound ? percent(bound.recall_lower) : "–", bound ? `of all positives are found, at least (${percent(bound.confidence)} sure)` : "no bound on recall yet"),
    left !== null && tile(number(left), "positives are probably left"),
    !withheld && tile(bound?.stop ? "0" : bound?.price ? number(bound.price) : "–", bound?.stop ? "labels to go: the target is certified" : bound?.price ? "further labels to certify the target, about" : "labels to certify the target: not known yet"));
}

function draw(data) {
  const { status, labels, found, recent, random, distance, people, agreement, bound, bounds } = data;
  const spent = labels.at(-1), positives = found.at(-1);
  const lines = [{ kind: "main", name: "positives found", points: labels.map((x, place) => [x, found[place]]) }];
  if (random !== null) lines.push({ kind: "random", name: "at random", points: [[0, 0], [Math.max(spent, 1), random * spent]] });
  const rate = labels.map((x, place) => [x, recent[place]]).filter(([x]) => x >= 5);
  const width = narrow() ? 420 : 500, four = bounds.length > 1 && distance.length > 0;
  const block = (title, inside, wide) => h("section", { class: wide ? "sheet wide" : "sheet", "aria-label": title }, h("h2", {}, title), inside);
  return [
    tiles(data),
    ...statements(status, positives),
    h("div", { class: "charts" },
      block("Positives found against labels spent",
        chart({ title: "Positives found", description: `${positives} positives after ${spent} labels`, lines, xLabel: "labels", height: four ? 260 : 320, width: narrow() ? 420 : four ? width : 1000 }), !four),
      bounds.length > 1 && block("Recall that is certified", chart({ title: "Certified recall", description: `at least ${percent(bound.recall_lower)} now`, lines: [{ kind: "main", name: `at least, ${percent(bound.confidence)} sure`, points: bounds }], yMost: 1, xMost: Math.max(1, spent), xLabel: "labels", format: share, width })),
      block("Share of yes in the last hundred",
        chart({ title: "Yield", description: rate.length ? `now ${percent(recent.at(-1))}` : "no labels yet", lines: [{ kind: "main", points: rate }], yMost: 1, xMost: Math.max(1, spent), xLabel: "labels", format: share, width })),
      distance.length > 0 && block("Distance to the nearest positive when asked",
        chart({ title: "Distance", description: `${distance.length} proposals shown`, dots: distance.map((one) => [one.label, one.distance]), xMost: spent, xLabel: "labels", width, format: (value) => String(+value.toPrecision(2)) }))),
    h("section", { class: "sheet" }, h("h2", {}, "People"), h("div", { class: "wide-table" },
      h("table", {}, h("thead", {}, h("tr", {}, ["Who", "Yes", "No", "Aside", "Last seen"].map((name, place) => h("th", { class: place && place < 4 ? "figure" : "", scope: "col" }, name)))),
        h("tbody", {}, people.map((one) => h("tr", {}, h("td", {}, one.who), ["yes", "no", "aside"].map((key) => h("td", { class: "figure" }, number(one[key]))), h("td", {}, new Date(1000 * one.last).toLocaleString())))))),
      h("p", { class: "soft small" }, agreed(agreement))),
    bound && h("details", {}, h("summary", {}, "What the bound rests on"), h("p", { class: "small" }, bound.reasoning), h("ul", { class: "small" }, bound.assumptions.map((text) => h("li", {}, text))), h("p", { class: "small soft" }, `Rule ${bound.rule}`)),
  ].filter(Boolean);
}

function agreed({ items, same, cohen, fleiss }) {
  if (!items) return "No item has been labelled by several people.";
  const kappa = cohen ?? fleiss;
  return `${number(items)} items were labelled by several people, ${number(same)} of them alike${kappa === null ? "" : `; kappa ${kappa.toFixed(2)}`}.`;
}
