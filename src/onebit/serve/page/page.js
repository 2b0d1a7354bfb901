"use strict";

// The page asks for everything again every two seconds, and builds what it shows from texts only:
// nothing in a record or a label becomes markup.

const SECONDS = 2;
const byId = (id) => document.getElementById(id);
const percent = (x, digits = 1) => (100 * x).toFixed(digits) + " %";
const count = (n) => n.toLocaleString("en");
let current = null, decision = null, busy = false;

function node(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

function drawing(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

async function ask(method, path, body) {
  const headers = {};
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = "Bearer " + key;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (reply.status === 401 || (reply.status === 403 && key)) {
    byId("login").hidden = false;
    byId("content").hidden = byId("empty").hidden = true;
    throw new Error("a key is needed");
  }
  const text = await reply.text();
  const found = text ? JSON.parse(text) : null;
  if (!reply.ok) throw new Error((found && (found.error || found.message)) || "the answer was " + reply.status);
  return found;
}

const modelPath = () => "/v1/models/" + encodeURIComponent(current);

async function refresh() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    const models = await ask("GET", "/v1/models");
    showModels(models);
    if (current !== null) {
      const [model, newest] = await Promise.all([ask("GET", modelPath()), ask("GET", modelPath() + "/decisions?limit=12")]);
      showFigures(model);
      showCurve(model);
      showLabels(model);
      showShadows(model);
      showNewest(newest);
    }
    say("up to date", false);
  } catch (error) {
    say(error.message === "Failed to fetch" ? "no answer from the service" : error.message, true);
  } finally {
    busy = false;
  }
}

function say(text, bad) {
  if (byId("state").textContent !== text) byId("state").textContent = text;
  byId("state").className = bad ? "bad" : "";
}

function showModels(models) {
  const names = models.map((model) => model.name);
  byId("login").hidden = true;
  byId("empty").hidden = names.length > 0;
  byId("content").hidden = names.length === 0;
  if (!names.includes(current)) current = names.length ? names[0] : null;
  const shown = [...byId("model").options].map((option) => option.value);
  if (shown.join("\n") !== names.join("\n")) byId("model").replaceChildren(...names.map((name) => node("option", { value: name }, name)));
  if (current !== null) byId("model").value = current;
}

function showFigures(model) {
  const accuracy = model.accuracy;
  const figures = [
    ["accuracy", accuracy ? percent(accuracy.estimate) : "–", accuracy ? percent(accuracy.low) + " to " + percent(accuracy.high) + " at all times" : "no feedback yet"],
    ["decisions", count(model.decisions), model.learner + (model.frozen ? ", frozen" : "")],
    ["feedback", count(model.right + model.wrong), count(model.right) + " right, " + count(model.wrong) + " wrong"],
    ["awaited", count(model.awaited), count(model.expired) + " expired"],
    ["explored", model.decisions ? percent(model.explored / model.decisions) : "–", "another label than the best one"],
    ["behind", count(model.behind), "rows, of " + count(model.rows + model.behind)],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value, about]) => node("div", {}, node("dt", {}, name), node("dd", {}, value, node("small", {}, about)))));
}

function showCurve(model) {
  const points = model.curve.filter((point) => point.accuracy);
  const box = byId("curve");
  byId("legend").replaceChildren();
  if (points.length < 2) {
    box.replaceChildren(node("p", { class: "none" }, "It begins with the second feedback."));
    return;
  }
  const narrow = box.clientWidth < 500;
  const width = narrow ? 380 : 1000, height = narrow ? 220 : 260, left = 44, right = 10, top = 8, bottom = 24;
  const n = (point) => point.right + point.wrong;
  const last = n(points[points.length - 1]);
  const x = (value) => left + (width - left - right) * value / last;
  const y = (value) => top + (height - top - bottom) * (1 - value);
  const svg = drawing("svg", { viewBox: "0 0 " + width + " " + height, role: "img" });
  svg.append(drawing("title", {}, "Accuracy of all feedback so far, its interval, and the accuracy of late"));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }));
    svg.append(drawing("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share, 0)));
  }
  for (const share of narrow ? [0.5, 1] : [0.25, 0.5, 0.75, 1]) {
    const anchor = share === 1 ? "end" : "middle";
    svg.append(drawing("text", { x: x(share * last), y: height - 6, "text-anchor": anchor }, count(Math.round(share * last)) + (share === 1 ? " bits" : "")));
  }
  const line = (value, some) => some.map((point, i) => (i ? "L" : "M") + x(n(point)).toFixed(1) + " " + y(value(point, i)).toFixed(1)).join("");
  const low = [...points].reverse().map((point) => "L" + x(n(point)).toFixed(1) + " " + y(point.accuracy.low).toFixed(1)).join("");
  svg.append(drawing("path", { class: "band", d: line((point) => point.accuracy.high, points) + low + "Z" }));
  const window_ = Math.max(2, Math.round(points.length / 12));
  const late = points.slice(window_);
  const recent = (point, i) => {
    const before = points[i];
    return (point.right - before.right) / (n(point) - n(before));
  };
  if (late.length > 1) svg.append(drawing("path", { class: "recent", d: line(recent, late) }));
  svg.append(drawing("path", { class: "mean", d: line((point) => point.accuracy.estimate, points) }));
  for (const at of model.changes) {
    const point = points.find((one) => one.at >= at);
    if (point) svg.append(drawing("line", { class: "change", x1: x(n(point)), x2: x(n(point)), y1: top, y2: height - bottom }));
  }
  box.replaceChildren(svg);
  byId("legend").append(
    node("span", { class: "key-mean" }, "— all feedback, with an interval that holds at all times (95 %)  "),
    node("span", { class: "key-recent" }, late.length > 1 ? "— the last " + count(n(points[points.length - 1]) - n(points[points.length - 1 - window_])) + "  " : ""),
    node("span", { class: "key-change" }, model.changes.length ? "┆ accuracy fell: " + model.changes.map(clock).join(", ") : ""));
}

function showLabels(model) {
  const total = Math.max(1, model.decisions);
  byId("labels").tBodies[0].replaceChildren(...model.labels.map((label) => {
    const told = label.right + label.wrong;
    const bar = node("span", { class: "bar" });
    bar.style.width = 100 * label.chosen / total + "%";
    const name = node("td", {}, String(label.label), label.retired ? node("span", { class: "none" }, " retired") : "", bar);
    return node("tr", {}, name, node("td", { class: "number" }, percent(label.chosen / total, 0)), node("td", { class: "number" }, count(label.chosen)),
      node("td", { class: "number" }, told ? percent(label.right / told, 0) : "–"));
  }));
}

function showShadows(model) {
  byId("shadow-section").hidden = model.shadows.length === 0;
  const interval = (value) => value ? percent(value.estimate) + " (" + percent(value.low) + " to " + percent(value.high) + ")" : "–";
  const body = byId("shadows").tBodies[0];
  if (body.contains(document.activeElement)) return;
  body.replaceChildren(...model.shadows.map((shadow) => {
    const button = node("button", { type: "button", "aria-label": "Let " + shadow.name + " decide" }, "Promote");
    button.addEventListener("click", () => promote(shadow.name));
    return node("tr", {}, node("td", {}, shadow.name, node("div", { class: "note" }, shadow.learner)), node("td", {}, interval(shadow.accuracy)),
      node("td", {}, interval(shadow.live)), node("td", {}, button));
  }));
}

async function promote(name) {
  if (!confirm("Let " + name + " decide from now on?")) return;
  document.activeElement.blur();
  try {
    await ask("POST", modelPath() + "/shadows/" + encodeURIComponent(name) + "/promote");
  } catch (error) {
    say(error.message, true);
  }
  refresh();
}

const clock = (at) => new Date(1000 * at).toLocaleTimeString("en-GB");

function showNewest(rows) {
  byId("newest").tBodies[0].replaceChildren(...rows.map((row) => {
    const record = typeof row.record === "string" ? row.record : JSON.stringify(row.record);
    let said = node("td", { class: "none" }, row.expired ? "expired" : "awaited");
    if (row.correct === true) said = node("td", { class: "yes" }, "✓ right");
    if (row.correct === false) said = node("td", { class: "no" }, "✗ wrong");
    return node("tr", {}, node("td", {}, clock(row.at)), node("td", {}, node("span", { class: "record" }, record.slice(0, 300))),
      node("td", {}, String(row.label), row.explored ? node("span", { class: "none" }, " explored") : ""),
      node("td", { class: "number" }, row.probability.toFixed(3)), said);
  }));
}

function recordIn(text) {
  try {
    const found = JSON.parse(text);
    if (typeof found === "object" && found !== null) return found;
  } catch {
    // Not JSON: a text.
  }
  return text;
}

byId("model").addEventListener("change", () => {
  current = byId("model").value;
  byId("answer").hidden = true;
  refresh();
});

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", byId("key").value);
  refresh();
});

byId("make").addEventListener("submit", async (event) => {
  event.preventDefault();
  const labels = byId("new-labels").value.split(",").map((label) => label.trim()).filter(Boolean);
  byId("make-error").textContent = "one moment …";
  try {
    await ask("POST", "/v1/models", { name: byId("new-name").value, labels });
    byId("make-error").textContent = "";
    refresh();
  } catch (error) {
    byId("make-error").textContent = error.message;
  }
});

byId("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("try-said").textContent = "";
  try {
    decision = await ask("POST", modelPath() + "/decide", { record: recordIn(byId("record").value) });
    byId("answer").hidden = false;
    byId("answer-label").textContent = decision.label;
    byId("answer-about").textContent = "with probability " + decision.probability.toFixed(3) +
      (decision.confidence === null ? "" : ", right with probability " + decision.confidence.toFixed(2));
    byId("right").focus();
  } catch (error) {
    byId("answer").hidden = true;
    byId("try-said").textContent = error.message;
  }
  refresh();
});

for (const [id, correct] of [["right", true], ["wrong", false]]) {
  byId(id).addEventListener("click", async () => {
    try {
      await ask("POST", modelPath() + "/feedback", { id: decision.id, correct });
      byId("try-said").textContent = "Thank you: the model has learned that it was " + id + ".";
    } catch (error) {
      byId("try-said").textContent = error.message;
    }
    byId("answer").hidden = true;
    byId("record").focus();
    refresh();
  });
}

document.addEventListener("visibilitychange", refresh);
setInterval(refresh, 1000 * SECONDS);
refresh();
