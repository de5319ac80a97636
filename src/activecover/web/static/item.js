// How one item looks: text with marked terms, pictures, molecule, columns, or the user's own template.
import { h } from "./dom.js";

function marked(text, terms) {
  if (!terms?.length) return [text];
  const words = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(${words.join("|")})(?![\\p{L}\\p{N}_])`, "giu");
  return text.split(pattern).map((part, place) => (place % 2 ? h("mark", {}, part) : part));
}

export function body(item, terms = []) {
  const { view, content } = item;
  const parts = [];
  if (view.frame) {
    parts.push(h("iframe", { class: "frame", sandbox: "", src: view.frame, title: `Item ${item.id}` }));
    return parts;
  }
  for (const name of view.images) parts.push(h("img", { class: "picture", src: content[name], alt: view.images.length > 1 ? name : "The item's image" }));
  if (view.molecule) {
    const address = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(view.molecule)}`;
    parts.push(h("img", { class: "picture molecule", src: address, alt: "Structure of the molecule" }));
  }
  const names = Object.keys(content).filter((name) => content[name] !== null && content[name] !== "");
  const long = names.filter((name) => view.texts.includes(name));
  for (const name of long) {
    if (long.length > 1) parts.push(h("h3", { class: "soft" }, name));
    parts.push(h("p", { class: "text" }, marked(String(content[name]), terms)));
  }
  const rest = names.filter((name) => !long.includes(name) && !view.images.includes(name) && String(content[name]) !== item.id);
  if (rest.length) {
    parts.push(
      h("dl", { class: "fields" }, rest.map((name) => [
        h("dt", {}, name),
        h("dd", {}, marked(String(content[name]), terms)),
      ])),
    );
  }
  if (!parts.length) parts.push(h("p", { class: "text" }, item.id));
  return parts;
}

// A line of text for an item, and its picture if it has one; both may be missing.
export function excerpt({ id, content, images = [] }, most = 160) {
  const texts = Object.entries(content ?? {}).filter(([name]) => !images.includes(name)).map(([, value]) => String(value ?? ""));
  const text = texts.filter((value) => value && value !== id).sort((a, b) => b.length - a.length)[0] ?? "";
  const picture = images.length ? h("img", { class: "stamp", src: content[images[0]], alt: "", loading: "lazy" }) : null;
  return [picture, text.length > most ? `${text.slice(0, most)}…` : text].filter(Boolean);
}

export function reason(item) {
  if (item.because) return `Asked because: ${item.because}${item.nearest ? `; nearest to ${item.nearest}` : ""}`;
  if (item.nearest) return `Asked because it is the nearest open item to a positive${item.distance === null ? "" : ` (distance ${item.distance.toPrecision(3)})`}`;
  if (item.source === null || item.source === "blind") return "";
  return { explore: "Drawn at random, to find first positives", given: "Given by you", insurance: "Drawn at random, to see what the search may miss" }[item.source] ?? "Ranked highest by the learner";
}
