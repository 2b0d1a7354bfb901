// Which label is bad: a table that can be sorted.

import { byId, count, fill, fillChoice, interval, node, percent } from "./page_dom.js";

const TREND = { rose: "↑ rose", fell: "↓ fell", steady: "→ steady" };

const COLUMNS = [
  ["label", (label) => String(label.label)],
  ["share", (label) => label.share],
  ["chosen", (label) => label.chosen],
  ["right recently", (label) => (label.recent ? label.recent.estimate : 2)],
  ["trend", (label) => ["fell", "steady", "rose", null].indexOf(label.trend)],
  ["with feedback", (label) => (label.answered === null ? 2 : label.answered)],
  ["when wrong, the truth is", (label) => -Object.values(label.truths).reduce((a, b) => a + b, 0)],
];

let column = 3, down = false, shown = null;

export function showLabels(report) {
  shown = report;
  fill(byId("labels").tHead.rows[0], ...COLUMNS.map(([name], i) => {
    const button = node("button", { type: "button", class: "sort" }, name + (i === column ? (down ? " ▼" : " ▲") : ""));
    button.addEventListener("click", () => sortBy(i));
    return node("th", { scope: "col", "aria-sort": i === column ? (down ? "descending" : "ascending") : "none" }, button);
  }));
  const value = COLUMNS[column][1];
  const labels = [...report.labels].sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    return (one < other ? -1 : one > other ? 1 : 0) * (down ? -1 : 1);
  });
  byId("labels").tBodies[0].replaceChildren(...labels.map(row));
  for (const id of ["old-label", "described-label"]) {
    fillChoice(byId(id), report.labels.filter((label) => !label.retired).map((label) => String(label.label)));
  }
}

function sortBy(i) {
  [column, down] = [i, i === column ? !down : false];
  document.activeElement.blur();
  showLabels(shown);
  byId("labels").tHead.rows[0].cells[i].firstChild.focus();
}

function row(label) {
  const truths = Object.entries(label.truths).slice(0, 3).map(([name, n]) => (name === "" ? "none of them" : name) + " " + count(n));
  const name = node("td", {}, String(label.label), label.retired ? node("span", { class: "none" }, " retired") : "");
  if (label.description !== null) name.append(node("div", { class: "record" }, label.description));
  const cell = (title, text, kind = "") => node("td", { "data-title": title, class: kind }, text);
  return node("tr", {}, name, cell("share", percent(label.share)), cell("chosen", count(label.chosen)), cell("right recently", interval(label.recent)),
    cell("trend", label.trend ? TREND[label.trend] : "–", label.trend === "fell" ? "no" : ""),
    cell("with feedback", label.answered === null ? "–" : percent(label.answered)), cell("when wrong, the truth is", truths.join(", ") || "–"));
}
