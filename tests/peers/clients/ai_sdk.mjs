// Drives a chat of the AI SDK as a person would: the steps come as JSON, what the browser then has goes out as JSON.
import { readFileSync } from "node:fs";

const { url, version, chat: id, steps, query = "", messages = [], automatic = true, headers = {} } = JSON.parse(readFileSync(0, "utf8"));
const { Chat } = await import(version === 7 ? "@ai-sdk/react" : "react-for-ai6");
const ai = await import({ 6: "ai6", 7: "ai", 60: "ai6-first" }[version]);
const sdk = version === 7 ? "sdk=7" : "";
const search = [sdk, query].filter(Boolean).join("&");
const transport = new ai.DefaultChatTransport({ api: `${url}${search ? "?" + search : ""}`, headers });
const errors = [];
const data = [];
const opened = (messages) => new Chat({
  id, transport, messages,
  onError: (error) => errors.push(error.message),
  onData: (part) => data.push(part),
  sendAutomaticallyWhen: automatic
    ? ({ messages }) => ai.lastAssistantMessageIsCompleteWithApprovalResponses({ messages }) ||
        ai.lastAssistantMessageIsCompleteWithToolCalls({ messages })
    : undefined,
});
let chat = opened(messages);
const until = async (look) => {
  for (let i = 0; i < 2000; i++) {
    await new Promise((done) => setTimeout(done, 5));
    if (look()) return;
  }
  throw new Error(`still ${chat.status}`);
};
const settled = () => until(() => chat.status === "ready" || chat.status === "error");
const asked = () => chat.messages.flatMap((m) => m.parts).filter((p) => p.state === "approval-requested");
const seen = [];
let kept = [];
for (const [what, given] of steps) {
  if (what === "send") await chat.sendMessage(given);
  if (what === "begin") { chat.sendMessage(given); await until(() => chat.messages.at(-1)?.parts.some(({ type }) => type === "data-progress")); seen.push(JSON.parse(JSON.stringify({ messages: chat.messages, status: chat.status }))); continue; }
  if (what === "stop") await chat.stop();
  if (what === "resume") await chat.resumeStream();
  if (what === "regenerate") await chat.regenerate();
  if (what === "approve") for (const part of asked()) { await chat.addToolApprovalResponse({ id: part.approval.id, approved: true, ...given }); await settled(); }
  if (what === "deny") for (const part of asked()) { await chat.addToolApprovalResponse({ id: part.approval.id, approved: false, reason: given }); await settled(); }
  if (what === "output") {
    const part = chat.messages.flatMap((m) => m.parts).find((p) => p.type === `tool-${given.tool}` && p.state === "input-available");
    await chat.addToolOutput({ toolCallId: part.toolCallId, ...given });
    await settled();
  }
  if (what === "edit") for (const { approval: { id } } of asked()) { await chat.addToolApprovalResponse({ id, approved: true, options: { body: { edits: { [id]: given } } } }); await settled(); }
  if (what === "forge") { for (const part of asked()) part.approval.id = given; for (const { approval: { id } } of asked()) { await chat.addToolApprovalResponse({ id, approved: true }); await settled(); } }
  if (what === "cancel") {
    const run = chat.messages.at(-1).metadata.run;
    await fetch(new URL(`/api/runs/${run}/cancel`, url), { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  }
  if (what === "keep") kept = JSON.parse(JSON.stringify(chat.messages));
  // A second page, which has what the first had then.
  if (what === "back") chat = opened(kept);
  if (what === "beside") { chat = opened(JSON.parse(JSON.stringify(chat.messages))); await chat.sendMessage(given); }
  if (what === "reopen") {
    // As a browser that opens the chat again: what it is given is valid, and so it is for a model.
    const held = await (await fetch(`${url}/${encodeURIComponent(id)}/messages${sdk ? "?" + sdk : ""}`)).json();
    const messages = await ai.validateUIMessages({ messages: held });
    await ai.convertToModelMessages(messages, { ignoreIncompleteToolCalls: true });
    chat = opened(messages);
  }
  await settled();
  seen.push(JSON.parse(JSON.stringify({ messages: chat.messages, status: chat.status, error: chat.error?.message })));
}
console.log(JSON.stringify({ seen, errors, data }));
process.exit(0);
