// The page asks for everything again every two seconds, and builds what it shows from texts only:
// nothing in a record or a label becomes markup.

import { showFindings, showGood, showShadows } from "./page_answers.js";
import { showCurve, showMarks } from "./page_chart.js";
import { byId, fillChoice, node, when } from "./page_dom.js";
import { showLabels } from "./page_labels.js";
import { reasons } from "./page_why.js";

const SECONDS = 2;
// `latest` is the number of the last refresh: what an earlier one gets is out of date.
let current = null, decision = null, busy = false, latest = 0, report = null;
let range = {};
let explained = { id: null, shown: null };  // the newest decision whose reasons are shown

async function send(method, path, body) {
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
  return reply;
}

async function ask(method, path, body) {
  const reply = await send(method, path, body);
  const text = await reply.text();
  const found = text ? JSON.parse(text) : null;
  if (!reply.ok) throw new Error((found && (found.error || found.message)) || "the answer was " + reply.status);
  return found;
}

const modelPath = () => "/v1/models/" + encodeURIComponent(current);

function rangeQuery() {
  const given = range.seconds ? { since: Date.now() / 1000 - range.seconds } : range;
  return new URLSearchParams(Object.entries(given).map(([name, at]) => [name, Math.max(0, at).toFixed(3)])).toString();
}

async function refresh() {
  if (document.hidden) return;
  const mine = ++latest;
  busy = true;
  try {
    const models = await ask("GET", "/v1/models");
    if (mine !== latest) return;
    showModels(models);
    if (current !== null) {
      const [found, newest] = await Promise.all([ask("GET", modelPath() + "/report?" + rangeQuery()), ask("GET", modelPath() + "/decisions?limit=12")]);
      if (mine !== latest) return;
      report = found;
      showGood(report);
      showFindings(report, act);
      showCurve(report, selectRange);
      showMarks(report);
      showLabels(report);
      showShadows(report);
      showNewest(newest);
      byId("content").dataset.model = report.model.name;
      byId("content").inert = false;
      byId("freeze").textContent = report.model.frozen ? "Unfreeze" : "Freeze";
    }
    say("up to date", false);
  } catch (error) {
    if (mine === latest) say(error.message === "Failed to fetch" ? "no answer from the service" : error.message, true);
  } finally {
    if (mine === latest) busy = false;
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
  fillChoice(byId("model"), names);
  if (current !== null) byId("model").value = current;
}

const why = (record, label) => ask("POST", modelPath() + "/explain", { record, label });

async function explain(row, rows) {
  try {
    explained = explained.id === row.id ? { id: null, shown: null } : { id: row.id, shown: reasons(await why(row.record, row.label)) };
  } catch (error) {
    explained = { id: row.id, shown: node("p", { class: "none" }, error.message) };
  }
  document.activeElement.blur();
  showNewest(rows);
  byId("newest").querySelector("[data-id='" + CSS.escape(row.id) + "'] button").focus();
}

function showNewest(rows) {
  if (byId("newest").contains(document.activeElement)) return;
  byId("newest").tBodies[0].replaceChildren(...rows.flatMap((row) => {
    const button = node("button", { type: "button", class: "small", "aria-expanded": String(explained.id === row.id) }, "why?");
    button.addEventListener("click", () => explain(row, rows));
    const shown = newestRow(row, button);
    return explained.id === row.id ? [shown, node("tr", {}, node("td", { colspan: 5 }, explained.shown))] : [shown];
  }));
}

function newestRow(row, button) {
  const now = Date.now() / 1000;
  const record = typeof row.record === "string" ? row.record : JSON.stringify(row.record);
  let said = node("td", { class: "none" }, row.expired ? "expired" : "awaited");
  if (row.correct === true) said = node("td", { class: "yes" }, "✓ right");
  if (row.correct === false) said = node("td", { class: "no" }, "✗ wrong");
  return node("tr", { "data-id": row.id }, node("td", {}, when(row.at, now)), node("td", {}, node("span", { class: "record" }, record.slice(0, 300))),
    node("td", {}, String(row.label), row.explored ? node("span", { class: "none" }, " explored") : "", " ", button),
    node("td", { class: "number" }, row.probability.toFixed(3)), said);
}

// Changes of the model: each asks first where it cannot be undone by the same button.

const labelOf = (name) => report.labels.find((label) => String(label.label) === name).label;

const ACTIONS = {
  promote: (finding) => confirm("Let " + finding.shadow + " decide from now on?") && ask("POST", modelPath() + "/shadows/" + encodeURIComponent(finding.shadow) + "/promote"),
  remove_shadow: (finding) => confirm("Remove the shadow " + finding.shadow + "?") && ask("DELETE", modelPath() + "/shadows/" + encodeURIComponent(finding.shadow)),
  retire: (finding) => confirm("Never choose " + finding.label + " again?") && ask("POST", modelPath() + "/labels", { retire: [labelOf(finding.label)] }),
  add_shadow: () => ask("POST", modelPath() + "/shadows", { name: freshName(), learner: report.model.learner, parameters: report.model.parameters }),
  take_over: () => confirm("Let the model decide from now on?") && ask("PATCH", modelPath(), { apprentice: { decides: "model" } }),
  give_back: () => confirm("Let the product decide from now on?") && ask("PATCH", modelPath(), { apprentice: { decides: "product" } }),
  unfreeze: () => ask("PATCH", modelPath(), { frozen: false }),
};

function freshName() {
  const names = report.shadows.map((shadow) => shadow.name);
  for (let i = 1; ; i++) if (!names.includes("fresh-" + i)) return "fresh-" + i;
}

// Does a change, says so, and empties the fields that it came from.
async function change(work, done, ...fields) {
  byId("manage-said").textContent = "one moment …";
  document.activeElement.blur();
  try {
    byId("manage-said").textContent = (await work()) === false ? "" : done;
    for (const field of fields) byId(field).value = "";
  } catch (error) {
    byId("manage-said").textContent = error.message;
  }
  refresh();
}

const act = (finding) => change(() => ACTIONS[finding.action](finding), "Done.");

function onSubmit(id, work) {
  byId(id).addEventListener("submit", (event) => {
    event.preventDefault();
    work();
  });
}

const described = (name, text) => (text.trim() ? { name, description: recordIn(text.trim()) } : name);

onSubmit("add-label", () => {
  const label = described(byId("new-label").value, byId("new-description").value);
  change(() => ask("POST", modelPath() + "/labels", { add: [label] }), "It is a label now.", "new-label", "new-description");
});
onSubmit("describe-label", () => {
  const label = described(labelOf(byId("described-label").value), byId("description").value);
  change(() => ask("POST", modelPath() + "/labels", { describe: [label] }), "The model knows what it means now.", "description");
});
onSubmit("retire-label", () => {
  const name = byId("old-label").value;
  change(() => ACTIONS.retire({ label: name }), "It will no longer be chosen.");
});
onSubmit("add-shadow", () => change(() => ask("POST", modelPath() + "/shadows", { name: byId("shadow-name").value, learner: byId("shadow-learner").value || "OneBitClassifier" }), "It learns beside the model now."));
onSubmit("limit", () => {
  const text = byId("max-exploration").value;
  const share = text === "" ? null : Number(text) / 100;
  change(() => ask("PATCH", modelPath(), { max_exploration: share }), share === null ? "There is no limit now." : "The limit holds from now on.", "max-exploration");
});
byId("freeze").addEventListener("click", () => change(() => ask("PATCH", modelPath(), { frozen: !report.model.frozen }), "Done."));

async function download(path, name) {
  const link = node("a", { download: name });
  if (sessionStorage.getItem("key")) link.href = URL.createObjectURL(await (await send("GET", path)).blob());
  else link.href = path;
  link.click();
}

byId("get-log").addEventListener("click", () => download(modelPath() + "/log", current + ".jsonl"));
byId("get-learner").addEventListener("click", () => download(modelPath() + "/learner", current + ".safetensors"));

// The range of time

const asLocal = (at) => new Date(1000 * at - 60000 * new Date(1000 * at).getTimezoneOffset()).toISOString().slice(0, 19);

function selectRange(since, until) {
  range = { since, until };
  byId("span").value = "custom";
  byId("custom").hidden = false;
  byId("from").value = asLocal(since);
  byId("to").value = asLocal(until);
  refresh();
}

byId("span").addEventListener("change", () => {
  const value = byId("span").value;
  byId("custom").hidden = value !== "custom";
  if (value === "custom") {
    const shown = report.range;
    byId("from").value = asLocal(shown.since);
    byId("to").value = asLocal(shown.until);
    return;
  }
  range = value === "all" ? {} : { seconds: Number(value) };
  refresh();
});

onSubmit("range", () => {
  const [since, until] = ["from", "to"].map((id) => new Date(byId(id).value).getTime() / 1000);
  selectRange(since, until);
});

// Models, keys and trying a decision

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
  explained = { id: null, shown: null };
  byId("manage-said").textContent = "";
  byId("content").inert = true; // it still shows the model before: no button of it may change this one
  say("reading " + current + " …", false);
  refresh();
});

onSubmit("login", () => {
  sessionStorage.setItem("key", byId("key").value);
  refresh();
});

function labelsIn(text) {
  const lines = text.trim().split("\n");
  const parts = lines.length > 1 ? lines.map((line) => line.split(/:(.*)/s)) : text.split(",").map((name) => [name, ""]);
  return parts.map(([name, meaning = ""]) => described(name.trim(), meaning)).filter((label) => label !== "");
}

onSubmit("make", async () => {
  const labels = labelsIn(byId("new-labels").value);
  byId("make-error").textContent = "one moment …";
  try {
    await ask("POST", "/v1/models", { name: byId("new-name").value, labels });
    byId("make-error").textContent = "";
    refresh();
  } catch (error) {
    byId("make-error").textContent = error.message;
  }
});

onSubmit("try", async () => {
  byId("try-said").textContent = "";
  try {
    const record = recordIn(byId("record").value);
    decision = await ask("POST", modelPath() + "/decide", { record });
    byId("answer").hidden = false;
    byId("answer-label").textContent = decision.label;
    byId("answer-about").textContent = "with probability " + decision.probability.toFixed(3) +
      (decision.confidence === null ? "" : ", right with probability " + decision.confidence.toFixed(2));
    byId("why").replaceChildren(reasons(await why(record, decision.label)));
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
      byId("try-said").textContent = "Thank you. The model has learned that it was " + id + ".";
    } catch (error) {
      byId("try-said").textContent = error.message;
    }
    byId("answer").hidden = true;
    byId("record").focus();
    refresh();
  });
}

document.addEventListener("visibilitychange", refresh);
setInterval(() => busy || refresh(), 1000 * SECONDS);
refresh();
