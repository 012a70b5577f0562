// Has the real clients read recorded streams, and says what each makes of them.
import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";
import OpenAI from "openai";

const streams = JSON.parse(readFileSync(0, "utf8"));
const answer = (body) => async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
const packages = { ai_sdk_6_first: "ai6-first", ai_sdk_6: "ai6", ai_sdk_7: "ai" };
const warned = [];
console.warn = (...words) => warned.push(words.map(String).join(" "));

async function uiMessage(name, body) {
  const ai = await import(packages[name]);
  const transport = new ai.DefaultChatTransport({ api: "http://here/", fetch: answer(body) });
  const user = { id: "u", role: "user", parts: [{ type: "text", text: "hello" }] };
  const stream = await transport.sendMessages({ chatId: "c", messages: [user], trigger: "submit-message" });
  let last = null;
  const errors = [];
  for await (const message of ai.readUIMessageStream({ stream, onError: (error) => errors.push(error.message) })) last = message;
  return { message: last, errors };
}

async function thread(body) {
  const agent = new HttpAgent({ url: "http://here/", threadId: "t", fetch: answer(body) });
  agent.setMessages([{ id: "u", role: "user", content: "hello" }]);
  try {
    const { result } = await agent.runAgent({ runId: "r" });
    return { messages: agent.messages, state: agent.state, result: result ?? null, interrupts: agent.pendingInterrupts };
  } catch (error) {
    return { error: error.message, messages: agent.messages };
  }
}

async function completion(body) {
  const client = new OpenAI({ apiKey: "none", baseURL: "http://here/v1", fetch: answer(body), maxRetries: 0 });
  const stream = client.chat.completions.stream({ model: "shop", messages: [{ role: "user", content: "hello" }] });
  const { choices } = await stream.finalChatCompletion();
  return choices.map(({ message, finish_reason }) => ({ content: message.content, calls: message.tool_calls ?? [], finish_reason }));
}

async function response(body) {
  const client = new OpenAI({ apiKey: "none", baseURL: "http://here/v1", fetch: answer(body), maxRetries: 0 });
  const { status, output, output_text } = await client.responses.stream({ model: "shop", input: "hello" }).finalResponse();
  return { status, output_text, output };
}

const made = {};
for (const [name, body] of Object.entries(streams)) {
  const kind = name.split("/")[1];
  if (kind in packages) made[name] = await uiMessage(kind, body);
  if (kind === "ag_ui") made[name] = await thread(body);
  if (kind === "chat") made[name] = await completion(body);
  if (kind === "responses") made[name] = await response(body);
}
console.log(JSON.stringify({ made: JSON.parse(JSON.stringify(made)), warned }));
process.exit(0);
