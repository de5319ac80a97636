// Map: the pool in two dimensions. Points are written as pixels, so that a hundred thousand stay smooth.
import { fetchFrom, get, h, notice, number, watch } from "./dom.js";
import { excerpt } from "./item.js";

const LAYERS = [["negative", "negative", 2], ["aside", "skipped, unsure or on a table", 2], ["frontier", "asked next", 3], ["positive", "positive", 3]];
const KIND = { leased: "aside", skipped: "aside", unsure: "aside", waiting: "aside", conflict: "aside" };

export function show(root, { campaign }) {
  const path = `/api/campaigns/${encodeURIComponent(campaign)}`;
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the pool" });
  const tip = h("div", { class: "tip", hidden: true });
  const words = h("p", { class: "soft small" }, "Loading …");
  const way = h("select", { "aria-label": "How the pool is brought into two dimensions", onchange: () => load() },
    h("option", { value: "pca" }, "Principal components"), h("option", { value: "umap" }, "UMAP: neighbours together"));
  root.replaceChildren(
    h("div", { class: "row spread" }, h("h1", {}, "Map"), way),
    h("div", { class: "legend" }, [["open", "open"], ...LAYERS].map(([kind, name]) => h("span", {}, h("i", { class: `i-${kind}` }), name))),
    h("div", { class: "map sheet" }, canvas, tip), words);

  let rows = null, places = null; // all points
  let asked = { rows: [], states: [], x: [], y: [] };
  let zoom = 1, centre = [0, 0], drawing = 0, grid = null, image = null, ended = false, stop = () => {};
  const context = canvas.getContext("2d");

  const size = () => Math.min(canvas.width, canvas.height) * 0.47 * zoom;
  const toScreen = (x, y) => [canvas.width / 2 + (x - centre[0]) * size(), canvas.height / 2 - (y - centre[1]) * size()];
  const fromScreen = (px, py) => [(px - canvas.width / 2) / size() + centre[0], (canvas.height / 2 - py) / size() + centre[1]];

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(["open", "yes", "no", "unsure", "frontier", "sheet"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  };
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  function draw() {
    drawing = 0;
    if (!places || ended) return;
    const started = performance.now();
    const { width, height } = canvas;
    const colour = colours();
    if (image?.width !== width || image?.height !== height) image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const [br, bg, bb] = rgb(colour.sheet), [or, og, ob] = rgb(colour.open);
    pixels.fill((255 << 24) | (bb << 16) | (bg << 8) | br);
    const ink = (255 << 24) | (ob << 16) | (og << 8) | or;
    const scale = size(), dot = Math.max(1, Math.round(devicePixelRatio * (rows.length > 20000 ? 1 : rows.length > 3000 ? 2 : 3) * Math.min(2, Math.sqrt(zoom))));
    for (let i = 0; i < rows.length; i += 1) {
      const px = Math.round(width / 2 + (places[2 * i] - centre[0]) * scale), py = Math.round(height / 2 - (places[2 * i + 1] - centre[1]) * scale);
      if (px < 0 || py < 0 || px + dot > width || py + dot > height) continue;
      if (dot === 1) pixels[py * width + px] = ink;
      else for (let dy = 0; dy < dot; dy += 1) pixels.fill(ink, (py + dy) * width + px, (py + dy) * width + px + dot);
    }
    context.putImageData(image, 0, 0);
    const paint = { negative: colour.no, aside: colour.unsure, frontier: colour.frontier, positive: colour.yes };
    for (const [kind, , radius] of LAYERS) {
      context.fillStyle = paint[kind];
      context.strokeStyle = colour.sheet;
      for (let i = 0; i < asked.rows.length; i += 1) {
        if ((KIND[asked.states[i]] ?? asked.states[i]) !== kind) continue;
        const [px, py] = toScreen(asked.x[i], asked.y[i]);
        context.beginPath();
        context.arc(px, py, radius * devicePixelRatio * 1.2, 0, 7);
        context.fill();
        if (radius > 2) context.stroke();
      }
    }
    canvas.dataset.milliseconds = (performance.now() - started).toFixed(1);
    canvas.dataset.points = rows.length;
  }
  const redraw = () => (drawing ||= requestAnimationFrame(draw));

  function fit() {
    const box = canvas.getBoundingClientRect();
    canvas.width = Math.max(1, Math.round(box.width * devicePixelRatio));
    canvas.height = Math.max(1, Math.round(box.height * devicePixelRatio));
    redraw();
  }

  // Points by cell, so that the one under the pointer is found at once.
  const cell = (x, y) => `${Math.floor(x * 50)},${Math.floor(y * 50)}`;
  function index() {
    grid = new Map();
    const put = (x, y, row) => {
      const key = cell(x, y);
      if (!grid.has(key)) grid.set(key, []);
      grid.get(key).push([x, y, row]);
    };
    for (let i = 0; i < rows.length; i += 1) put(places[2 * i], places[2 * i + 1], rows[i]);
    for (let i = 0; i < asked.rows.length; i += 1) put(asked.x[i], asked.y[i], asked.rows[i]);
  }
  function under(px, py) {
    if (!grid) return null;
    const [x, y] = fromScreen(px, py);
    const reach = (9 * devicePixelRatio) / size();
    const around = Math.min(6, Math.ceil(reach * 50));
    let best = null, least = reach * reach;
    for (let dx = -around; dx <= around; dx += 1) for (let dy = -around; dy <= around; dy += 1) {
      for (const [cx, cy, row] of grid.get(cell(x + dx / 50, y + dy / 50)) ?? []) {
        const far = (cx - x) ** 2 + (cy - y) ** 2;
        if (far <= least) [best, least] = [row, far];
      }
    }
    return best;
  }

  const seen = new Map();
  let hovered = null, waiting;
  function hover(event) {
    const box = canvas.getBoundingClientRect();
    const row = under((event.clientX - box.left) * devicePixelRatio, (event.clientY - box.top) * devicePixelRatio);
    hovered = row;
    if (row === null) return void (tip.hidden = true);
    const at = [event.clientX - box.left, event.clientY - box.top];
    const state = asked.states[asked.rows.indexOf(row)] ?? "open";
    const reveal = (item) => {
      if (hovered !== row || ended) return;
      tip.replaceChildren(h("b", {}, item.id), h("span", { class: "soft" }, ` · ${state}`), h("div", {}, excerpt({ ...item, images: item.view.images }, 240)));
      tip.hidden = false;
      tip.style.left = `${Math.min(at[0] + 14, Math.max(0, box.width - tip.offsetWidth - 6))}px`;
      tip.style.top = `${Math.min(at[1] + 14, Math.max(0, box.height - tip.offsetHeight - 6))}px`;
    };
    if (seen.has(row)) return reveal(seen.get(row));
    clearTimeout(waiting);
    waiting = setTimeout(() => get(`${path}/item`, { row }).then((item) => (seen.set(row, item), reveal(item))).catch(() => {}), 60);
  }

  function zoomAt(px, py, factor) {
    const before = fromScreen(px, py);
    zoom = Math.min(200, Math.max(0.5, zoom * factor));
    const after = fromScreen(px, py);
    centre = [centre[0] + before[0] - after[0], centre[1] + before[1] - after[1]];
    redraw();
  }
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoomAt((event.clientX - box.left) * devicePixelRatio, (event.clientY - box.top) * devicePixelRatio, 1.0015 ** -event.deltaY);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => ((held = [event.clientX, event.clientY]), canvas.setPointerCapture(event.pointerId)));
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return hover(event);
    tip.hidden = true;
    centre = [centre[0] - ((event.clientX - held[0]) * devicePixelRatio) / size(), centre[1] + ((event.clientY - held[1]) * devicePixelRatio) / size()];
    held = [event.clientX, event.clientY];
    redraw();
  });
  canvas.addEventListener("pointerleave", () => ((hovered = null), (tip.hidden = true)));
  canvas.addEventListener("keydown", (event) => {
    const step = 0.2 / zoom;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (moves[event.key]) centre = [centre[0] + moves[event.key][0], centre[1] + moves[event.key][1]];
    else if (event.key === "+" || event.key === "-") zoom *= event.key === "+" ? 1.4 : 1 / 1.4;
    else if (event.key === "0") [zoom, centre] = [1, [0, 0]];
    else return;
    event.preventDefault();
    redraw();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  const resized = new ResizeObserver(fit);
  resized.observe(canvas);

  async function load() {
    const by = way.value;
    stop();
    words.textContent = by === "umap" ? "Looking for neighbours: a minute or more the first time …" : "Loading …";
    try {
      const data = await (await fetchFrom(`${path}/map?by=${by}`)).arrayBuffer();
      if (ended || by !== way.value) return;
      const count = new DataView(data).getUint32(0, true);
      rows = new Uint32Array(data, 4, count);
      places = new Float32Array(data, 4 + 4 * count, 2 * count);
      index();
      redraw();
      stop = watch(`${path}/map/states?by=${by}`, (states) => {
        asked = states;
        index();
        const counted = (kind) => states.states.filter((state) => (KIND[state] ?? state) === kind).length;
        const text = `${number(count)} points; ${number(counted("positive"))} positive, ${number(counted("negative"))} negative`;
        words.textContent = `${text}. ${by === "pca" ? "First two principal components." : "By UMAP."} Wheel or + and - to zoom, drag or arrows to move, 0 for all.`;
        canvas.setAttribute("aria-label", `Map of the pool: ${text}`);
        redraw();
      }, 3);
    } catch (wrong) {
      notice(wrong.message);
      if (by === "umap" && !ended) {
        way.value = "pca";
        load();
      }
    }
  }
  load();
  return () => {
    ended = true;
    stop();
    resized.disconnect();
    dark.removeEventListener("change", redraw);
  };
}
