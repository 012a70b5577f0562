// OpenAI's own client for Node, against a real server: a question, an approval, a call of the caller's, a 404.
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const { url, tool } = JSON.parse(readFileSync(0, "utf8"));
const client = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0 });
const found = {};
found.models = (await client.models.list()).data.map(({ id }) => id);
const ask = (content, more = {}) => client.chat.completions.create({ model: "shop", messages: [{ role: "user", content }], ...more });
found.chat = (await ask("parallel")).choices[0].message.content;
found.streamed = "";
for await (const chunk of await ask("parallel", { stream: true })) found.streamed += chunk.choices[0]?.delta?.content ?? "";
const called = (await ask("choose", { tools: [{ type: "function", function: tool }] })).choices[0];
found.call = called.message.tool_calls[0].function;
const messages = [
  { role: "user", content: "choose" },
  called.message,
  { role: "tool", tool_call_id: called.message.tool_calls[0].id, content: "red" },
];
const done = await client.chat.completions.create({ model: "shop", messages, tools: [{ type: "function", function: tool }] });
found.done = done.choices[0].message.content;
const waits = await client.responses.create({ model: "shop", input: "pay" });
const request = waits.output.find(({ type }) => type === "mcp_approval_request");
const approved = await client.responses.create({
  model: "shop", previous_response_id: waits.id,
  input: [{ type: "mcp_approval_response", approval_request_id: request.id, approve: true }],
});
found.approved = approved.output.filter(({ type }) => type === "mcp_call").map(({ output }) => output);
const stream = client.responses.stream({ model: "shop", input: "think" });
found.kinds = [];
for await (const event of stream) found.kinds.push(event.type);
found.final = (await stream.finalResponse()).output_text;
try {
  await client.responses.create({ model: "nobody", input: "x" });
} catch (error) {
  found.missing = [error.status, error.code];
}
console.log(JSON.stringify(found));
process.exit(0);
