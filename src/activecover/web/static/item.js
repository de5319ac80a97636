// How one item looks: text with marked terms, picture, molecule, columns, or the user's own template.
import { fetchFrom, h } from "./dom.js";

function marked(text, terms) {
  if (!terms?.length) return [text];
  const words = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(${words.join("|")})(?![\\p{L}\\p{N}_])`, "giu");
  return text.split(pattern).map((part, place) => (place % 2 ? h("mark", {}, part) : part));
}

function picture(campaign, id) {
  const image = h("img", { class: "picture", alt: `Image ${id}` });
  // With a token an address alone is not enough.
  fetchFrom(`/api/campaigns/${encodeURIComponent(campaign)}/image?id=${encodeURIComponent(id)}`)
    .then((answer) => answer.blob())
    .then((blob) => {
      image.src = URL.createObjectURL(blob);
      image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
    })
    .catch(() => (image.alt = `Image ${id}: it cannot be shown`));
  return image;
}

const isPicture = (value) => typeof value === "string" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(value);

export function body(campaign, item, terms = []) {
  const { view, content } = item;
  const parts = [];
  if (view.frame) {
    parts.push(h("iframe", { class: "frame", sandbox: "", src: view.frame, title: `Item ${item.id}` }));
    return parts;
  }
  if (view.image) parts.push(picture(campaign, item.id));
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
  const rest = names.filter((name) => !long.includes(name) && String(content[name]) !== item.id);
  if (rest.length) {
    parts.push(
      h("dl", { class: "fields" }, rest.map((name) => [
        h("dt", {}, name),
        h("dd", {}, isPicture(content[name]) ? h("img", { class: "picture", src: content[name], alt: name }) : marked(String(content[name]), terms)),
      ])),
    );
  }
  if (!parts.length) parts.push(h("p", { class: "text" }, item.id));
  return parts;
}

export function excerpt(content, id, most = 160) {
  const text = Object.values(content ?? {}).map((value) => String(value ?? "")).filter((value) => value && value !== id).sort((a, b) => b.length - a.length)[0] ?? "";
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function reason(item) {
  if (item.nearest) return ["Asked because it is the nearest open item to a positive", item.distance === null ? "" : ` (distance ${item.distance.toPrecision(3)})`];
  return [{ explore: "Drawn at random, to find first positives", given: "Given by you" }[item.source] ?? "Ranked highest by the learner"];
}
