// Drives an AG-UI client: the steps come as JSON; what it then has, and each event that it took, goes out as JSON.
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";

const { url, thread, steps, tools = [], state = {}, messages = [], headers = {} } = JSON.parse(readFileSync(0, "utf8"));
const warned = [];
console.warn = (...words) => warned.push(words.map(String).join(" "));
const agent = new HttpAgent({ url, headers, threadId: thread, initialState: state, initialMessages: messages });
const seen = [];
let number = 0;
for (const [what, given] of steps) {
  const events = [];
  const subscriber = { onEvent: ({ event }) => { events.push(event); } };
  let error = null, result = null;
  const run = { tools, runId: `r${number++}`, ...(given?.run ?? {}) };
  if (what === "say") agent.addMessage({ id: `u${number}`, role: "user", content: given.text, ...given.message });
  if (what === "result") agent.addMessage({ id: `t${number}`, role: "tool", toolCallId: given.call ?? seen.at(-1).pending[0], content: given.content });
  if (what === "resume") run.resume = seen.at(-1).interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", ...given.answer }));
  if (what === "raw") run.resume = given.resume;
  if (what === "repeat") run.runId = given.runId;
  if (what === "lose") {
    agent.addMessage({ id: `u${number}`, role: "user", content: given.text });
    subscriber.onActivitySnapshotEvent = () => agent.abortRun();
  }
  if (what === "cancel") {
    agent.addMessage({ id: `u${number}`, role: "user", content: given.text });
    subscriber.onActivitySnapshotEvent = () => fetch(new URL(`/api/runs/${agent.state.treadle.run}/cancel`, url), { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  }
  try {
    result = await agent.runAgent(run, subscriber);
  } catch (failure) {
    error = String(failure.message ?? failure);
  }
  const last = events.at(-1) ?? {};
  seen.push(JSON.parse(JSON.stringify({
    error, events, messages: agent.messages, state: agent.state, last,
    interrupts: last.outcome?.interrupts ?? [], pending: last.outcome?.pendingToolCallIds ?? [],
  })));
}
console.log(JSON.stringify({ seen, warned }));
process.exit(0);
