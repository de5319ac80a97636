// Set up: drop a file, choose columns, see what would be made of it, start.
import { fetchFrom, get, h, notice, number, post, say } from "./dom.js";

// A value of the file: images come as what they are, anything else as text.
const shown = (value) => (/^data:image\/(png|jpeg);base64,/.test(value) ? h("img", { class: "stamp", src: value, alt: "" }) : value.slice(0, 140));

export function show(root, { go }) {
  const input = h("input", { type: "file", class: "unseen", id: "file", accept: ".csv,.tsv,.txt,.data,.parquet,.pq,.jsonl,.ndjson,.npy,.npz,.ris,.nbib,.zip", onchange: () => input.files[0] && take(input.files[0]) });
  const drop = h("div", { class: "drop" },
    h("p", {}, "Drop a file here: CSV, TSV, Parquet, JSON Lines, npy, npz, RIS, or a zip of images"),
    h("label", { for: "file", class: "button" }, "Choose a file"), input,
    h("p", { class: "soft small" }, "It stays on the machine where the server runs."));
  const rest = h("div", { class: "review" });
  root.replaceChildren(h("h1", {}, "Set up a campaign"), drop, rest);
  for (const kind of ["dragover", "dragleave", "drop"]) drop.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });

  // A file that is not going to be used is erased at once.
  let waiting = null;
  const discard = () => {
    if (waiting) fetchFrom(`/api/uploads/${waiting}`, { method: "DELETE" }).catch(() => {});
    waiting = null;
  };

  async function take(file) {
    discard();
    drop.classList.add("done");
    rest.replaceChildren(h("p", { class: "soft" }, `Sending ${file.name} …`));
    try {
      const { upload } = await (await fetchFrom(`/api/uploads?name=${encodeURIComponent(file.name)}`, { method: "POST", raw: file })).json();
      waiting = upload;
      await review(file, upload, true);
    } catch (wrong) {
      rest.replaceChildren();
      notice(wrong.message);
    }
  }

  async function review(file, upload, header) {
    const found = await get(`/api/uploads/${upload}/preview`, { header });
    const [learners, rules] = await Promise.all([get("/api/learners"), get("/api/rules")]);
    const options = (chosen) => [h("option", { value: "" }, "–"), ...found.columns.map((name) => h("option", { value: name, selected: name === chosen }, name))];
    const field = (name, control, hint) => h("label", {}, name, control, hint && h("span", { class: "hint" }, hint));
    const named = file.name.replace(/\.[^.]+$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "-").slice(0, 60) || "campaign";
    const part = {
      name: h("input", { value: named, required: true, maxlength: "100", id: "new-name" }),
      id: h("select", {}, options(found.id_column)),
      label: h("select", {}, options(found.label_column)),
      embed: h("select", {}, ["auto", "text", "columns", "vectors", "smiles", "images", "tfidf"].map((name) => h("option", {}, name))),
      learner: h("select", {}, [h("option", { value: "" }, "as suits the pool"), ...learners.map(({ name, summary }) => h("option", { value: name, title: summary }, name))]),
      explore: h("input", { type: "number", min: "0", value: "100" }),
      overlap: h("input", { type: "number", min: "1", value: "1" }),
      budget: h("input", { type: "number", min: "1" }),
      certify: h("select", {}, [["", "no promise"], ["0.8@0.95", "80 % of the positives"], ["0.9@0.95", "90 % of the positives"], ["0.95@0.95", "95 % of the positives"]].map(([value, name]) => h("option", { value }, name))),
      rule: h("select", {}, rules.map(({ name, summary }) => h("option", { value: name, title: summary, selected: name === "qbcb" }, name))),
      known: h("input", { placeholder: "ids, comma-separated" }),
      header: h("input", { type: "checkbox", checked: header, onchange: () => review(file, upload, part.header.checked).catch((wrong) => notice(wrong.message)) }),
      forget: h("input", { type: "checkbox" }),
      template: h("textarea", { rows: "4", placeholder: "<h1>{{ title }}</h1><p>{{ abstract }}</p>" }),
    };
    const uses = found.columns.map((name) => h("input", { type: "checkbox", value: name, checked: found.embed_columns.includes(name) }));
    const shows = found.columns.map((name) => h("input", { type: "checkbox", value: name, checked: name !== found.label_column && !/^label/i.test(name) }));
    const boxes = (list) => h("div", { class: "columns" }, list.map((box) => h("label", { class: "line" }, box, box.value)));
    const start = h("button", { class: "primary", type: "submit" }, "Start");
    const form = h("form", { onsubmit: (event) => (event.preventDefault(), create()) },
      h("div", { class: "form" },
        field("Name of the campaign", part.name),
        field("Column with ids", part.id, "row numbers where there is none"),
        field("Column with known labels, to leave out", part.label, "neither shown nor learned from"),
        field("How items become vectors", part.embed, found.reason),
        found.columns.length > 0 && h("fieldset", {}, h("legend", {}, "Columns to make vectors of"), boxes(uses), h("span", { class: "hint" }, "none: chosen by the kind")),
        found.columns.length > 0 && h("fieldset", {}, h("legend", {}, "Columns to show"), boxes(shows)),
        field("Stop once it is certain (95 %) that these are found", part.certify),
        h("label", { class: "line" }, part.header, "The first line has the column names")),
      h("details", {}, h("summary", {}, "More"),
        h("div", { class: "form" },
          field("Items to label at random first", part.explore, "until a positive is known it goes on anyway"),
          field("Known positives", part.known),
          field("People per item", part.overlap),
          field("Most labels", part.budget),
          field("What decides", part.learner),
          field("What proves it", part.rule, "qbcb: control items are mixed in, and nobody sees which"),
          h("label", { class: "line" }, part.forget, "Forget negatives once they are final"),
          field("Template to show an item by", part.template, "HTML; runs no scripts and loads nothing"))),
      start);
    rest.replaceChildren(
      h("h2", {}, `${file.name}: ${number(found.rows)} rows`),
      h("div", { class: "sheet wide-table" }, h("table", {},
        h("thead", {}, h("tr", {}, found.columns.slice(0, 12).map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, Array.from({ length: Math.min(5, Object.values(found.first)[0]?.length ?? 0) }, (_, row) => h("tr", {}, found.columns.slice(0, 12).map((name) => h("td", { class: "text small" }, shown(found.first[name][row])))))))),
      h("p", { class: "soft small" }, `The plan: ${found.rows < 100 ? "a few" : "the first"} items at random, then always the open item that looks most like the positives found so far.`),
      form);
    part.name.focus();

    async function create() {
      start.disabled = true;
      start.textContent = "Making vectors …";
      const whole = (control) => (control.value === "" ? null : Number(control.value));
      const ticked = (list) => list.filter((box) => box.checked).map((box) => box.value);
      const columns = ticked(uses).filter((name) => name !== part.id.value && name !== part.label.value);
      const body = {
        name: part.name.value.trim(), upload, embed: part.embed.value, columns: columns.length ? columns : null,
        id_column: part.id.value || null, label_column: part.label.value || null,
        show: found.columns.length ? ticked(shows).filter((name) => name !== part.label.value) : null,
        header: part.header.checked, learner: part.learner.value || null, explore: whole(part.explore), overlap: whole(part.overlap),
        budget: whole(part.budget), certify: part.certify.value || null, rule: part.certify.value ? part.rule.value : null, known: part.known.value.split(",").map((name) => name.trim()).filter(Boolean),
        forget_negatives: part.forget.checked, template: part.template.value.trim() || null,
      };
      try {
        const made = await post("/api/campaigns", body);
        waiting = null;
        say(`${made.name} has begun`);
        go("label", made.name);
      } catch (wrong) {
        notice(wrong.message);
        start.disabled = false;
        start.textContent = "Start";
      }
    }
  }
  return discard;
}
