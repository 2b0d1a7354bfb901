// A model of a onebit service: remote decide and learn, for browsers and Node, without dependencies.

const RETRIES = 5;
const TRY_AGAIN = [429, 502, 503, 504];

export class ServiceError extends Error {
  constructor(message, status = null) {
    super(message);
    this.name = "ServiceError";
    this.status = status;
  }
}

// The service refused what was asked: contradicting feedback, an unknown id, a label twice.
export class RefusedError extends ServiceError {
  constructor(message, status = null) {
    super(message, status);
    this.name = "RefusedError";
  }
}

const newId = () => crypto.randomUUID();
const idOf = (decision) => (typeof decision === "string" ? decision : decision.id);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const pause = (attempt) => (0.5 + 0.5 * Math.random()) * Math.min(50 * 2 ** attempt, 2000);

export class Client {
  #url; #path; #key; #timeout; #seed = null;

  constructor(url, model, { key = null, timeout = 30 } = {}) {
    this.model = model;
    this.#url = url.replace(/\/+$/, "");
    this.#path = "/v1/models/" + encodeURIComponent(model);
    this.#key = key;
    this.#timeout = timeout;
  }

  // Decisions and feedback

  async decide(record, options = {}) {
    const question = this.#question(record, options, options.id);
    return this.#decision(question, await this.#post("decide", question));
  }

  async decideMany(records, { ids = null, ...options } = {}) {
    if (ids !== null && ids.length !== records.length) throw new RangeError("there is an id for each record");
    const questions = records.map((record, i) => this.#question(record, options, ids === null ? undefined : ids[i]));
    if (questions.length === 0) return [];
    const answers = await this.#post("decide", questions);
    return answers.map((answer, i) => this.#decision(questions[i], answer));
  }

  explain(record, { label, against, among } = {}) { return this.#post("explain", { record, label, against, among }); }

  async learn(decision, feedback) {
    await this.#post("feedback", this.#feedback(decision, feedback));
  }

  async learnMany(decisions, feedback) {
    if (decisions.length !== feedback.length) throw new RangeError("there is feedback for each decision");
    if (decisions.length === 0) return;
    const results = await this.#post("feedback", decisions.map((decision, i) => this.#feedback(decision, feedback[i])));
    for (const one of results) {
      if (one.status !== "accepted" && one.status !== "repeated") throw new RefusedError("feedback for " + one.id + ": " + one.message);
    }
  }

  async revise(decision, feedback) {
    await this.#post("revise", this.#feedback(decision, feedback));
  }

  async withdraw(decision) {
    await this.#post("revise", { id: idOf(decision), withdrawn: true });
  }

  // The model

  async make(labels, spec = {}) {
    // With a seed from the client, a repeated request is recognised.
    if (this.#seed === null) this.#seed = Math.floor(Math.random() * 2 ** 53);
    await this.#ask("POST", "/v1/models", { name: this.model, labels, seed: this.#seed, ...spec });
    this.#seed = null;
    return this;
  }

  show() { return this.#ask("GET", this.#path); }

  report({ since, until } = {}) {
    const given = Object.entries({ since, until }).filter(([, at]) => at !== undefined);
    return this.#ask("GET", this.#path + "/report?" + new URLSearchParams(given));
  }

  newest(limit = 20) { return this.#ask("GET", this.#path + "/decisions?limit=" + limit); }
  addClasses(classes) { return this.#change("POST", "/labels", { add: classes }); }
  describe(labels) { return this.#change("POST", "/labels", { describe: labels }); }
  retireClasses(classes) { return this.#change("POST", "/labels", { retire: classes }); }
  freeze() { return this.#change("PATCH", "", { frozen: true }); }
  unfreeze() { return this.#change("PATCH", "", { frozen: false }); }
  expire(seconds, countsAs = "nothing") { return this.#change("PATCH", "", { expiry_seconds: seconds, expired_counts_as: countsAs }); }
  setLimits({ maxExploration = null, maxNewShare = null } = {}) {
    return this.#change("PATCH", "", { max_exploration: maxExploration, max_new_share: maxNewShare });
  }
  apprentice(settings) { return this.#change("PATCH", "", { apprentice: settings }); }
  erase(selection) { return this.#post("erase", selection); }
  async delete() { await this.#ask("DELETE", this.#path); }

  // Shadows

  addShadow(name, learner = "OneBitClassifier", parameters = {}) { return this.#change("POST", "/shadows", { name, learner, parameters }); }
  async removeShadow(name) { await this.#ask("DELETE", this.#path + "/shadows/" + encodeURIComponent(name)); }
  promote(name) { return this.#change("POST", "/shadows/" + encodeURIComponent(name) + "/promote"); }

  // Logs: a text, a row a line

  async exportLog() {
    const reply = await this.#send("GET", this.#path + "/log", undefined, {}, null);
    const text = await reply.text();
    if (!reply.ok) this.#refuse(reply, text);
    return text;
  }

  async importLog(lines) {
    const reply = await this.#send("PUT", this.#path + "/log", lines, { "Content-Type": "application/x-ndjson" }, null);
    const text = await reply.text();
    if (!reply.ok) this.#refuse(reply, text);
    return this;
  }

  // What is sent, and how answers are read

  #question(record, { among, chosen, chosenProbability, explore }, id) {
    // With an id from the client, a repeated question is decided once.
    const question = { record, id: id ?? newId() };
    if (among !== undefined) question.among = [...among];
    if (chosen !== undefined) question.chosen = chosen;
    if (explore === false) question.explore = false;
    if (chosenProbability !== undefined) question.chosen_probability = chosenProbability;
    return question;
  }

  #decision(question, answer) {
    return { ...answer, record: question.record, among: question.among ?? null };
  }

  #feedback(decision, { correct, truth, reward } = {}) {
    const given = [correct, truth, reward].filter((one) => one !== undefined);
    if (given.length !== 1) throw new TypeError("learn takes one of correct, truth and reward");
    const id = idOf(decision);
    if (reward !== undefined) return { id, reward };
    return truth === undefined ? { id, correct: Boolean(correct) } : { id, truth };
  }

  #post(verb, body) { return this.#ask("POST", this.#path + "/" + verb, body); }

  async #change(method, path, body) {
    await this.#ask(method, this.#path + path, body);
    return this;
  }

  // Sends a request until there is an answer: what is repeated happens once, by its ids.
  async #ask(method, path, body) {
    for (let attempt = 0; ; attempt++) {
      let reply, text;
      try {
        reply = await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body), { "Content-Type": "application/json" }, this.#timeout);
        text = await reply.text();
      } catch (error) {
        if (attempt === RETRIES) throw new ServiceError(this.#url + ": " + error.message);
      }
      if (text !== undefined && (!TRY_AGAIN.includes(reply.status) || attempt === RETRIES)) {
        if (reply.ok) return text ? JSON.parse(text) : null;
        this.#refuse(reply, text);
      }
      await sleep(pause(attempt));
    }
  }

  #send(method, path, body, headers, timeout) {
    if (body === undefined) headers = {};
    if (this.#key !== null) headers.Authorization = "Bearer " + this.#key;
    const signal = timeout === null ? undefined : AbortSignal.timeout(1000 * timeout);
    return fetch(this.#url + path, { method, headers, body, signal });
  }

  #refuse(reply, text) {
    let found = {};
    try {
      found = JSON.parse(text) ?? {};
    } catch {
      // A proxy answers with other texts.
    }
    const message = found.error || found.message || reply.statusText || "the answer was " + reply.status;
    // 404 is also the status for unknown models.
    const refused = [409, 410, 422].includes(reply.status) || found.status === "unknown";
    throw new (refused ? RefusedError : ServiceError)(message, reply.status);
  }
}
