// Is it good, and what should I do?

import { byId, count, drawing, fill, interval, node, percent, points, when } from "./page_dom.js";

const WIDTH = 120;

// An interval on the scale from 0 to 100 %, as a line with a dot.
function whisker(found, kind) {
  const svg = drawing("svg", { viewBox: "0 0 " + WIDTH + " 12", preserveAspectRatio: "xMinYMid", class: "whisker " + kind, "aria-hidden": "true" });
  const x = (share) => 4 + (WIDTH - 8) * share;
  svg.append(drawing("line", { class: "grid", x1: x(0), x2: x(1), y1: 6, y2: 6 }));
  svg.append(drawing("line", { class: "span", x1: x(found.low), x2: x(found.high), y1: 6, y2: 6 }));
  svg.append(drawing("circle", { cx: x(found.estimate), cy: 6, r: 3.5 }));
  return svg;
}

export function showGood(report) {
  const windows = [report.last, report.day];
  const titles = ["the last " + count(report.last.right + report.last.wrong) + " with feedback", "the last day: " + count(report.day.right + report.day.wrong)];
  byId("good").tHead.replaceChildren(node("tr", {}, node("th", { scope: "col" }, "right"), ...titles.map((title) => node("th", { scope: "col" }, title))));
  const cell = (found, kind, about = "") => node("td", {}, found ? interval(found) : "–", ...(found ? [whisker(found, kind)] : []), ...(about ? [node("div", { class: "note" }, about)] : []));
  const exact = (share) => (share === null ? null : { estimate: share, low: share, high: share });
  const rows = [
    ["this model", windows.map((window) => cell(window.accuracy, "own"))],
    ["the best constant label", windows.map((window) => cell(window.constant && window.constant.accuracy, "other", window.constant ? "always " + window.constant.label : ""))],
    ["chance", windows.map((window) => node("td", {}, window.chance === null ? "–" : percent(window.chance), ...(window.chance === null ? [] : [whisker(exact(window.chance), "other")])))],
  ];
  const beside = report.apprentice;
  if (beside) {
    rows[0][0] = "what was decided";
    const wide = (found, about) => {
      const made = cell(found, "other", about);
      made.colSpan = 2;
      return [made];
    };
    const decides = (who) => (beside.decides === who ? "decides" : percent(beside.share) + " of the decisions are left to it");
    rows.splice(1, 0, ["this model alone", wide(beside.model, decides("model"))], ["your own rule", wide(beside.product, decides("product"))]);
  }
  byId("good").tBodies[0].replaceChildren(...rows.map(([name, cells]) => node("tr", {}, node("th", { scope: "row" }, name), ...cells)));
  const model = report.model;
  const figures = [
    ["decisions", count(model.decisions), model.learner + (model.frozen ? ", frozen" : "")],
    ["feedback", count(model.right + model.wrong), count(model.right) + " right, " + count(model.wrong) + " wrong"],
    ["awaited", count(model.awaited), count(model.expired) + " expired"],
    ["explored", model.decisions ? percent(model.explored / model.decisions, 1) : "–", "another label than the best guess" + (model.max_exploration === null ? "" : "; at most " + percent(model.max_exploration, 1))],
    ["behind", count(model.behind), "of " + count(model.rows + model.behind) + " rows"],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value, about]) => node("div", {}, node("dt", {}, name), node("dd", {}, value, node("small", {}, about)))));
}

const label = (name) => (name === "" ? "none of the labels" : "“" + name + "”");
const subject = (finding) => (finding.label === undefined ? "The accuracy" : label(finding.label));

const SENTENCES = {
  no_feedback_yet: () => "There is no feedback yet, so the accuracy is unknown.",
  better_than_constant: (f) => "It is better than always choosing " + label(f.other) + ": recently " + interval(f.now) + " were right, against " + interval(f.before) + ".",
  worse_than_constant: (f) => "Always choosing " + label(f.other) + " would be better: " + interval(f.before) + " right, against " + interval(f.now) + " of this model recently.",
  unclear: (f) => "It is not clear yet whether it is better than always choosing " + label(f.other) + ": recently " + interval(f.now) + " were right, against " + interval(f.before) + ".",
  fell: (f, now) => subject(f) + " fell from " + percent(f.before.estimate) + " to " + percent(f.now.estimate) + " since " + when(f.since, now) + ".",
  confused: (f) => "When " + label(f.label) + " is wrong, the truth is " + label(f.other) + " in " + interval(f.now) + " of the cases.",
  useless_label: (f) => label(f.label) + " is right in only " + interval(f.now) + "; a random label would be right in " + percent(f.share) + ".",
  label_without_feedback: (f) => percent(f.share) + " of the decisions for " + label(f.label) + " get no feedback; of the others, " + percent(f.of_others) + ".",
  without_feedback: (f) => percent(f.share) + " of the decisions get no feedback within an hour.",
  shadow_better: (f) => "The shadow " + f.shadow + " is better by " + points(f.difference) + ".",
  shadow_worse: (f) => "The shadow " + f.shadow + " is worse by " + points(f.difference) + ".",
  shadow_unclear: (f) => "It is not clear yet whether the shadow " + f.shadow + " is better" + (f.difference ? ": by " + signed(f.difference.low) + " to " + signed(f.difference.high) + " points." : "."),
  apprentice_better: (f) => "The model is better than your own rule by " + points(f.difference) + ".",
  apprentice_worse: (f) => "The model is worse than your own rule by " + points(f.difference) + ".",
  apprentice_unclear: (f) => "It is not clear yet whether the model is better than your own rule" + (f.difference ? ": by " + signed(f.difference.low) + " to " + signed(f.difference.high) + " points." : "."),
  exploration: (f) => "Another label than the best guess was chosen in " + percent(f.share, 1) + " of the recent decisions; of all such labels, " + interval(f.now) + " were right. The best guess alone would be right more often by " + signed(f.difference.low, 1) + " to " + signed(f.difference.high, 1) + " points: that is the cost of exploration.",
  frozen: () => "It is frozen: it does not learn from feedback.",
};

const signed = (share, digits = 0) => (share < 0 ? "−" : "+") + Math.abs(100 * share).toFixed(digits);

const BUTTONS = {
  promote: "Promote",
  remove_shadow: "Remove the shadow",
  retire: "Retire the label",
  add_shadow: "Add a fresh shadow",
  unfreeze: "Unfreeze",
  take_over: "Let the model decide",
  give_back: "Let the product decide",
};

// act(finding) does what its button says.
export function showFindings(report, act) {
  fill(byId("findings"), ...report.findings.map((finding) => {
    const shown = node("li", { class: finding.tone, "data-kind": finding.kind }, node("span", {}, SENTENCES[finding.kind](finding, report.at)));
    if (finding.action) {
      const button = node("button", { type: "button", "data-action": finding.action }, BUTTONS[finding.action]);
      button.addEventListener("click", () => act(finding));
      shown.append(button);
    }
    return shown;
  }));
}

export function showShadows(report) {
  byId("shadow-section").hidden = report.shadows.length === 0;
  byId("shadows").tBodies[0].replaceChildren(...report.shadows.map((shadow) => {
    const difference = shadow.difference;
    return node("tr", {}, node("td", {}, shadow.name, node("div", { class: "note" }, shadow.learner)), node("td", {}, interval(shadow.accuracy)),
      node("td", {}, interval(shadow.live)), node("td", {}, difference ? signed(difference.low) + " to " + signed(difference.high) + " points" : "–"));
  }));
}
