// Progress: what was found for which effort, how much may be left, and who did what.
import { chart } from "./charts.js";
import { h, number, percent, watch } from "./dom.js";

const tile = (value, name) => h("div", { class: "sheet tile" }, h("b", {}, value), h("span", {}, name));
const share = (value) => `${Math.round(100 * value)}%`;

export function show(root, { campaign }) {
  const place = h("div", {}, h("p", { class: "soft" }, "Loading …"));
  root.replaceChildren(h("h1", {}, "Progress"), place);
  return watch(`/api/campaigns/${encodeURIComponent(campaign)}/progress`, (data) => place.replaceChildren(...draw(data)));
}

const narrow = () => innerWidth < 740;

function draw({ status, labels, found, recent, random, distance, people, agreement, bound, rows }) {
  const spent = labels.at(-1), positives = found.at(-1);
  const points = labels.map((x, place) => [x, found[place]]);
  const lines = [{ kind: "main", name: "positives found", points }];
  if (random !== null) lines.push({ kind: "random", name: "at random", points: [[0, 0], [Math.max(spent, 1), random * spent]] });
  const rate = labels.map((x, place) => [x, recent[place]]).filter(([x]) => x >= 5);
  return [
    h("div", { class: "tiles" },
      tile(number(positives), "positives found"),
      tile(number(spent), `labels spent of ${number(rows)}`),
      tile(spent ? percent(recent.at(-1)) : "–", "yes among the last hundred"),
      tile(bound ? percent(bound.recall_lower) : "–", bound ? `of all positives are found, at least (${percent(bound.confidence)} sure)` : "no bound on recall yet"),
      tile(bound?.price ? number(bound.price) : "–", bound?.price ? "labels to certify 95 %, about" : "price of certainty")),
    status.stopped && h("p", { class: "sheet", id: "stopped" }, h("b", {}, "Ended: "), status.stopped),
    status.note && h("p", { class: "sheet soft" }, status.note),
    h("div", { class: "charts" },
      h("section", { class: "sheet wide", "aria-label": "Positives found" }, h("h2", {}, "Positives found against labels spent"),
        chart({ title: "Positives found", description: `${positives} positives after ${spent} labels`, lines, xLabel: "labels", height: 320, width: narrow() ? 420 : 1000 })),
      h("section", { class: "sheet", "aria-label": "Yield" }, h("h2", {}, "Share of yes in the last hundred"),
        chart({ title: "Yield", description: rate.length ? `now ${percent(recent.at(-1))}` : "no labels yet", lines: [{ kind: "main", points: rate }], yMost: 1, xMost: Math.max(1, spent), xLabel: "labels", format: share, width: narrow() ? 420 : 640 })),
      h("section", { class: "sheet", "aria-label": "Distance of proposals" }, h("h2", {}, "Distance to the nearest positive when asked"),
        distance.length
          ? chart({ title: "Distance", description: `${distance.length} proposals shown`, dots: distance.map((one) => [one.label, one.distance]), xMost: spent, xLabel: "labels", width: narrow() ? 420 : 640, format: (value) => String(+value.toPrecision(2)) })
          : h("p", { class: "soft" }, "Begins once a positive is known and the random sample is through."))),
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
