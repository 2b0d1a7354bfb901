// Why this label: the reasons, as words with bars.

import { drawing, node, percent } from "./page_dom.js";

const WIDTH = 100, HEIGHT = 10;

function bar(amount, largest) {
  const svg = drawing("svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT, class: "bars", "aria-hidden": "true" });
  const length = (WIDTH / 2) * Math.abs(amount) / largest;
  svg.append(drawing("line", { class: "grid", x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT }));
  svg.append(drawing("rect", { class: amount > 0 ? "for" : "against", x: amount > 0 ? WIDTH / 2 : WIDTH / 2 - length, y: 1, width: length, height: HEIGHT - 2 }));
  return svg;
}

// An element that says why `found.label` scores higher than `found.against`.
export function reasons(found) {
  const chance = (i) => (found.probabilities === null ? "" : " (" + percent(found.probabilities[i]) + ")");
  const box = node("div", { class: "why" }, node("p", {}, "Why " + found.label + chance(0) + " rather than " + found.against + chance(1) + ":"));
  if (found.reasons.length === 0) {
    box.append(node("p", { class: "none" }, "The model knows no difference between them yet."));
    return box;
  }
  const largest = Math.max(...found.reasons.map((reason) => Math.abs(reason.amount))) || 1;
  box.append(node("ul", {}, ...found.reasons.map((reason) => {
    const sign = reason.amount < 0 ? "−" : "+";
    return node("li", {}, bar(reason.amount, largest), node("span", { class: "number" }, sign + Math.abs(reason.amount).toFixed(2)), node("span", {}, reason.text));
  })));
  return box;
}
