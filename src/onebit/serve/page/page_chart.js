// What changed: accuracy over time, with marks, and a range to select.

import { byId, count, drawing, interval, node, percent, when } from "./page_dom.js";

let selecting = null;

// select(since, until) is called for a range that was drawn with the pointer.
export function showCurve(report, select) {
  const points = report.series;
  const box = byId("curve");
  if (selecting !== null) return;
  byId("legend").replaceChildren();
  const range = report.range;
  byId("in-range").textContent = range.right + range.wrong ? interval(range.accuracy) + " right of " + count(range.right + range.wrong) : "";
  if (points.length < 2) {
    box.replaceChildren(node("p", { class: "none" }, "There is not enough feedback in this time to draw."));
    return;
  }
  const narrow = box.clientWidth < 500;
  const width = narrow ? 380 : 1000, height = narrow ? 220 : 260, left = 44, right = 10, top = 18, bottom = 24;
  const first = points[0].since, last = Math.max(points[points.length - 1].until, first + 1e-3);
  const x = (at) => left + (width - left - right) * (at - first) / (last - first);
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const svg = drawing("svg", { viewBox: "0 0 " + width + " " + height, role: "img" });
  svg.append(drawing("title", {}, "Accuracy over time, with its interval"));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }));
    svg.append(drawing("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share)));
  }
  const ticks = narrow ? [0, 1] : [0, 0.25, 0.5, 0.75, 1];
  for (const share of ticks) {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    svg.append(drawing("text", { x: x(first + share * (last - first)), y: height - 6, "text-anchor": anchor }, when(first + share * (last - first), report.at)));
  }
  const middle = (point) => x((point.since + point.until) / 2).toFixed(1);
  const line = (value, some) => some.map((point, i) => (i ? "L" : "M") + middle(point) + " " + y(value(point)).toFixed(1)).join("");
  const low = [...points].reverse().map((point) => "L" + middle(point) + " " + y(point.accuracy.low).toFixed(1)).join("");
  svg.append(drawing("path", { class: "band", d: line((point) => point.accuracy.high, points) + low + "Z" }));
  svg.append(drawing("path", { class: "mean", d: line((point) => point.accuracy.estimate, points) }));
  for (const [i, mark] of report.marks.entries()) {
    if (mark.at < first || mark.at > last) continue;
    const kind = mark.kind === "accuracy fell" ? "change" : "mark";
    svg.append(drawing("line", { class: kind, x1: x(mark.at), x2: x(mark.at), y1: top, y2: height - bottom }));
    svg.append(drawing("text", { x: x(mark.at), y: top - 5, "text-anchor": "middle" }, i + 1));
  }
  listen(svg, (place) => first + (last - first) * Math.min(1, Math.max(0, (place * width - left) / (width - left - right))), x, top, height - bottom, select);
  box.replaceChildren(svg);
  byId("legend").append(node("span", { class: "key-mean" }, "— right, with an interval of 95 %"), node("span", {}, "   Numbers are the marks below. Drag over the chart to select a time."));
}

function listen(svg, timeAt, x, top, bottom, select) {
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    return timeAt((event.clientX - box.left) / box.width);
  };
  svg.addEventListener("pointerdown", (event) => {
    selecting = at(event);
    const chosen = drawing("rect", { class: "chosen", y: top, height: bottom - top });
    svg.append(chosen);
    const move = (moved) => {
      const [from, to] = [x(selecting), x(at(moved))].sort((a, b) => a - b);
      chosen.setAttribute("x", from);
      chosen.setAttribute("width", to - from);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", (ended) => {
      window.removeEventListener("pointermove", move);
      const [from, to] = [selecting, at(ended)].sort((a, b) => a - b);
      selecting = null;
      chosen.remove();
      if (x(to) - x(from) > 5) select(from, to);
    }, { once: true });
  });
}

export function showMarks(report) {
  byId("marks").hidden = report.marks.length === 0;
  byId("marks").tBodies[0].replaceChildren(...report.marks.map((mark, i) => node("tr", {},
    node("td", {}, i + 1 + ". " + when(mark.at, report.at)), node("td", { class: mark.kind === "accuracy fell" ? "no" : "" }, mark.kind + (mark.names.length ? ": " + mark.names.join(", ") : "")),
    node("td", {}, interval(mark.before)), node("td", {}, interval(mark.after)))));
}
