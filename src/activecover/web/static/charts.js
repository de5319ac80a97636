// Line charts drawn by hand: a few hundred points at most, readable without colour, described in words.
import { number, s } from "./dom.js";

const LEFT = 48, RIGHT = 12, TOP = 26, BOTTOM = 30;

function ticks(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, place) => place * step);
}

// lines: [{points: [[x, y]], kind: "main" | "random" | "area", name}], dots: [[x, y]]
export function chart({ title, description, lines = [], dots = [], xLabel, height = 260, width: W = 640, yMost, xMost, format = number }) {
  const all = [...lines.flatMap((line) => line.points), ...dots];
  const mostX = xMost ?? Math.max(1, ...all.map(([x]) => x));
  const mostY = yMost ?? Math.max(1e-9, ...all.map(([, y]) => y)) * 1.05;
  const X = (x) => LEFT + ((W - LEFT - RIGHT) * x) / mostX;
  const Y = (y) => height - BOTTOM - ((height - TOP - BOTTOM) * Math.min(y, mostY)) / mostY;
  const way = (points) => points.map(([x, y], place) => `${place ? "L" : "M"}${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join("");
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": `${title}. ${description}` });
  for (const y of ticks(mostY)) {
    svg.append(s("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: Y(y), y2: Y(y) }));
    svg.append(s("text", { x: LEFT - 7, y: Y(y) + 4, "text-anchor": "end" }, format(y)));
  }
  for (const x of ticks(mostX)) svg.append(s("text", { x: X(x), y: height - BOTTOM + 17, "text-anchor": "middle" }, number(x)));
  if (xLabel) svg.append(s("text", { x: W - RIGHT, y: height - 1, "text-anchor": "end" }, xLabel));
  for (const line of lines) {
    if (line.kind === "main" && line.points.length) {
      const last = line.points.at(-1), first = line.points[0];
      svg.append(s("path", { class: "area", d: `${way(line.points)}L${X(last[0])},${Y(0)}L${X(first[0])},${Y(0)}Z` }));
    }
    svg.append(s("path", { class: line.kind, d: way(line.points) }));
  }
  for (const [x, y] of dots) svg.append(s("circle", { class: "dot", cx: X(x).toFixed(1), cy: Y(y).toFixed(1), r: 2.4 }));
  let at = LEFT;
  for (const line of lines.filter((one) => one.name)) {
    svg.append(s("line", { class: line.kind, x1: at, x2: at + 22, y1: 9, y2: 9 }), s("text", { class: "key", x: at + 28, y: 13 }, line.name));
    at += 44 + 7 * line.name.length;
  }
  return svg;
}
