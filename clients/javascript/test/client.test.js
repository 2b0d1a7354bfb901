// Every verb, against the service whose address is ONEBIT_URL.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { Client, RefusedError, ServiceError } from "../index.js";

const URL_ = process.env.ONEBIT_URL;
const SMALL = { learner: "Banditron", parameters: { gamma: 0.1 }, n_features: 64, seed: 7 };

test("decisions and feedback", async () => {
  const client = new Client(URL_ + "/", "js-decide");
  assert.equal(await client.make(["a", "b", "c"], SMALL), client);
  await client.make(["a", "b", "c"], SMALL);
  const decision = await client.decide({ subject: "x" }, { among: ["a", "b"] });
  assert.ok(["a", "b"].includes(decision.label));
  assert.deepEqual(decision.among, ["a", "b"]);
  await client.learn(decision, { correct: true });
  await client.learn(decision.id, { correct: true });
  await assert.rejects(client.learn(decision, { correct: false }), RefusedError);
  await assert.rejects(client.learn("nobody", { correct: true }), RefusedError);
  await assert.rejects(client.learn(decision, {}), TypeError);
  await client.revise(decision, { correct: false });
  await client.withdraw(decision.id);
  await assert.rejects(client.revise("nobody", { correct: true }), RefusedError);
  const again = await client.decide("x", { id: "one" });
  assert.equal((await client.decide("x", { id: "one" })).label, again.label);
  const many = await client.decideMany(["x", "y"], { ids: ["p", "q"] });
  assert.deepEqual(many.map((one) => one.id), ["p", "q"]);
  await client.learnMany(many, [{ truth: "a" }, { truth: null }]);
  await assert.rejects(client.learnMany(many, [{ truth: "b" }, { truth: null }]), RefusedError);
  await assert.rejects(client.learnMany(many, []), RangeError);
  assert.deepEqual(await client.decideMany([]), []);
  await client.learnMany([], []);
  const newest = await client.newest(2);
  assert.deepEqual(newest.map((one) => [one.id, one.truth ?? null]), [["q", null], ["p", "a"]]);
});

test("the model, shadows and logs", async () => {
  const client = await new Client(URL_, "js-model").make(["a", "b"], SMALL);
  await client.addClasses(["c"]);
  await assert.rejects(client.describe([{ name: "a", description: "card" }]), RefusedError); // Banditron takes none
  await client.retireClasses(["a"]);
  await client.freeze();
  assert.equal((await client.show()).frozen, true);
  await client.unfreeze();
  await client.expire(60, "wrong");
  await client.setLimits({ maxExploration: 0.05 });
  assert.equal((await client.show()).max_exploration, 0.05);
  await client.setLimits({});
  assert.equal((await client.decide("x", { explore: false })).probability, 1);
  const explained = await client.explain("x", { label: "b" });
  assert.deepEqual([explained.label, explained.against, explained.reasons], ["b", "c", []]);
  await client.addShadow("s", "Banditron", { gamma: 0.2 });
  await client.promote("s");
  await client.removeShadow("previous");
  await client.apprentice({ share: 0 });
  const decision = await client.decide("x", { chosen: "c", chosenProbability: 0.5 });
  assert.deepEqual([decision.label, decision.probability], ["c", 0.5]);
  const found = await client.report({ since: 1 });
  assert.deepEqual(found.labels.map((one) => [one.label, one.retired]), [["a", true], ["b", false], ["c", false]]);
  assert.equal(found.model.expiry_seconds, 60);
  assert.deepEqual(await client.erase({ ids: [decision.id] }), { decisions: 1, rows: 1 });
  const copy = await new Client(URL_, "js-copy").importLog(await client.exportLog());
  assert.equal((await copy.show()).rows, found.model.rows + 1);
  await assert.rejects(copy.importLog("{}"), RefusedError);
  await client.delete();
  await assert.rejects(client.show(), (error) => error instanceof ServiceError && error.status === 404);
});

test("labels say what they mean", async () => {
  const client = new Client(URL_, "js-described");
  await client.make([{ name: "a", description: "card" }, "b"], { n_features: 1024 });
  await client.describe([{ name: "b", description: { subject: "parcel" } }]);
  await client.addClasses([{ name: "c", description: "fax" }]);
  assert.deepEqual((await client.show()).labels.map((one) => one.description), ["card", '{"subject":"parcel"}', "fax"]);
});

test("a request without an answer is repeated with the same id", async () => {
  const ids = [];
  const server = createServer((request, reply) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      ids.push([JSON.parse(body).id, request.headers.authorization]);
      if (ids.length === 1) return request.socket.destroy();
      reply.writeHead(ids.length === 2 ? 503 : 200, { "Content-Type": "application/json" });
      reply.end(JSON.stringify({ id: ids[0][0], label: "a", probability: 1, confidence: null }));
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const client = new Client("http://127.0.0.1:" + server.address().port, "m", { key: "secret" });
  assert.equal((await client.decide("x")).label, "a");
  assert.equal(ids.length, 3);
  assert.equal(new Set(ids.map(String)).size, 1);
  assert.equal(ids[0][1], "Bearer secret");
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});
