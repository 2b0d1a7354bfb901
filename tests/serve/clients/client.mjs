// A decision and its feedback, with the defaults of Node's fetch.
const model = process.argv[2];
const ask = async (verb, body) => {
  const reply = await fetch(`${model}/${verb}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!reply.ok) throw new Error(`${reply.status}: ${await reply.text()}`);
  return reply.json();
};
const decision = await ask("decide", { record: { subject: "card charged twice" } });
const result = await ask("feedback", { id: decision.id, correct: true });
console.log(decision.id, result.status);
