/** A conversation with an agent: its answers as they arrive, its calls, and the decisions that it waits for. */

import { useRef, useState } from "preact/hooks";
import { get, runPath, send } from "../api/client";
import type { Message, Part, Run, RunInFull } from "../api/types";
import { useDoing, useGet } from "../api/use";
import { Failure, Status, Told, useTitle } from "../parts/frame";
import { moment } from "../parts/figures";
import { Prose } from "../parts/prose";
import { Shown } from "../parts/text";
import { Windowed } from "../parts/windowed";
import type { Item } from "../run/fold";
import { textOf } from "../run/fold";
import { Row, type Showing } from "../run/story";
import { useRun } from "../run/use";
import { address, go } from "../router";
import { useAgents } from "./runs";

interface Talked {
  id: string;
  title: string;
  agent?: string;
  last?: Run;
  updated?: number;
}

interface InFull extends Talked {
  runs: Run[];
}

/** The page of conversations: `path` is what the address names, an agent or "c" and a conversation. */
export function ChatPage({ path }: { path: string[] }) {
  const conversation = path[0] === "c" ? (path[1] ?? null) : null;
  const [round, setRound] = useState(0);
  const listed = useGet<{ conversations: Talked[] }>("api/conversations", { limit: 100 }, { every: 10_000, news: round });
  const found = useGet<InFull>(conversation === null ? null : `api/conversations/${encodeURIComponent(conversation)}`, {}, { news: round });
  const [open, setOpen] = useState(false);
  const newest = conversation === null ? null : (found.data?.runs[0] ?? null);
  const title = conversation === null ? "New conversation" : (found.data?.title ?? "");
  useTitle(title || "Chat");
  return (
    <div class={`chat-page${open ? " open" : ""}`}>
      <aside aria-label="Conversations">
        <a class="button main" data-page="1" href={address("chat")} onClick={() => setOpen(false)}>New conversation</a>
        <ul>
          {(listed.data?.conversations ?? []).map((one) => (
            <li key={one.id}>
              <a data-page="1" href={address("chat", "c", one.id)} aria-current={one.id === conversation ? "page" : undefined} onClick={() => setOpen(false)}><Shown text={one.title || one.id} prose /></a>
            </li>
          ))}
        </ul>
        {listed.data?.conversations.length === 0 && <p class="faint">There is none yet.</p>}
        <Failure error={listed.error} />
      </aside>
      <section class="talk" aria-label="Conversation">
        <header>
          <button type="button" class="quiet narrow-only" aria-expanded={open} onClick={() => setOpen(!open)}>☰ Conversations</button>
          {conversation === null ? <h1>New conversation</h1> : found.data ? <Title key={conversation} told={found.data} onChanged={() => setRound(round + 1)} /> : <h1>…</h1>}
        </header>
        <Failure error={found.error} onAgain={found.again} />
        {conversation === null ? <Begin agent={path[0] ?? ""} onBegun={() => setRound(round + 1)} />
          : newest && <Talk key={newest.id} run={newest} conversation={conversation} onNext={() => setRound(round + 1)} />}
      </section>
    </div>
  );
}

function Title({ told, onChanged }: { told: InFull; onChanged(): void }) {
  const [text, setText] = useState<string | null>(null);
  const doing = useDoing();
  const path = `api/conversations/${encodeURIComponent(told.id)}`;
  const rename = () => doing.run(async () => { await send("PATCH", path, { title: text ?? "" }); setText(null); onChanged(); });
  const remove = () => doing.run(async () => {
    if (!confirm("Delete this conversation with all its runs?")) return;
    await send("DELETE", path);
    onChanged();
    go(address("chat"));
  });
  return (
    <>
      {text === null ? <h1><Shown text={told.title || told.id} prose /></h1> : (
        <form onSubmit={(event) => { event.preventDefault(); void rename(); }}>
          <input aria-label="Title" value={text} onInput={(event) => setText(event.currentTarget.value)} /> <button type="submit">Keep</button>
        </form>
      )}
      <button type="button" class="quiet" onClick={() => setText(text === null ? told.title : null)}>{text === null ? "Rename" : "Leave it"}</button>
      <button type="button" class="quiet" onClick={remove}>Delete</button>
      <Failure error={doing.error} />
    </>
  );
}

function Begin({ agent, onBegun }: { agent: string; onBegun(): void }) {
  const agents = useAgents();
  const [chosen, setChosen] = useState(agent);
  const empty = useRef<string | null>(null);
  const name = chosen || agents.data?.[0]?.name || "";
  const told = agents.data?.find((one) => one.name === name);
  const begin = async (text: string) => {
    // One that was made for a question that was then refused is for the next.
    const made = (empty.current ??= (await send<{ id: string }>("POST", "api/conversations", {})).id);
    await send("POST", "api/runs", { agent: name, input: text, conversation: made });
    empty.current = null;
    onBegun();
    go(address("chat", "c", made));
  };
  return (
    <>
      <div class="begin page-scroll">
        <Failure error={agents.error} onAgain={agents.again} />
        <div class="chips" role="group" aria-label="With which agent">
          {(agents.data ?? []).map((one) => <button type="button" class="chip" aria-pressed={one.name === name} onClick={() => setChosen(one.name)}>{one.name}</button>)}
        </div>
        {told && (
          <>
            <p>{told.description && <Shown text={told.description} prose />} <span class="faint"><Shown text={told.model} /></span></p>
            <ul class="tools">
              {told.tools.map((tool) => <li><strong class="tool"><Shown text={tool.name} /></strong> <Shown text={tool.description.split("\n")[0] ?? ""} prose />{tool.asks && tool.asks !== "never" ? <span class="effect write">{tool.asks === "always" ? "asks first" : "may ask first"}</span> : null}</li>)}
            </ul>
          </>
        )}
      </div>
      <Composer placeholder={`Say something to ${name || "…"}`} disabled={!name} onSend={begin} />
    </>
  );
}

function Talk({ run, conversation, onNext }: { run: Run; conversation: string; onNext(): void }) {
  const followed = useRun(run.id);
  const { items, head } = followed;
  const waits = items.some((item) => item.kind === "call" && item.call.status === "waiting");
  const told = useGet<RunInFull>(runPath(run.id), {}, { news: `${head.phase}${waits}${followed.connection === "lost"}` });
  const [following, setFollowing] = useState(true);
  const [refused, setRefused] = useState<Error | null>(null);
  const stopping = useDoing();
  const pending = told.data?.pending ?? [];
  const under = head.phase === "running" && told.data?.status !== "left";
  const say = async (text: string) => {
    if (under && head.events) {
      try {
        return void (await send("POST", runPath(run.id, "messages"), { text }));
      } catch (error) {
        // It may have ended between the look and the word.
        const now = await get<RunInFull>(runPath(run.id));
        if (now.status === "running") throw error;
      }
    }
    await send("POST", "api/runs", { agent: run.agent, input: text, conversation });
    onNext();
  };
  const showing: Showing = { run: run.id, pending, below: told.data?.sub_runs ?? [], onDecided: (error) => { setRefused(error); told.again(); }, onAsk: (question) => void say(question), chat: true };
  const shown: (Item | Earlier)[] = [...head.earlier.map((message, at): Earlier => ({ key: `earlier-${at}`, kind: "earlier", message })), ...items.filter((item) => item.kind !== "step")];
  return (
    <>
      <Failure error={followed.error ?? told.error ?? refused} />
      <Windowed items={shown} keyOf={(item) => item.key} likely={80} label="What was said" following={following} onFollowing={setFollowing} render={(item) => (item.kind === "earlier" ? <Said message={item.message} /> : <Row item={item} showing={showing} />)} />
      <p class="under faint">
        <Status status={told.data?.status ?? "running"} /> <a data-page="1" href={address("runs", run.id)}>the run in full</a> · {moment(head.started)}
        {under && <button type="button" class="quiet" disabled={stopping.busy} onClick={() => stopping.run(() => send("POST", runPath(run.id, "cancel")))}>Stop</button>}
      </p>
      <Failure error={under ? stopping.error : null} />
      <Composer disabled={pending.length > 0} placeholder={pending.length ? "It waits for your decision above" : under ? "Say something while it works" : "Say something"} onSend={say} />
      <Told>{pending.length ? `It waits for you: ${pending.map((one) => one.tool).join(", ")}.` : head.phase === "finished" ? "It has answered." : ""}</Told>
    </>
  );
}

interface Earlier {
  key: string;
  kind: "earlier";
  message: Message;
}

function Said({ message }: { message: Message }) {
  const parts: Part[] = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  const calls = parts.filter((part) => part.type === "tool_call");
  const text = textOf(parts.filter((part) => part.type !== "tool_call" && part.type !== "thinking" && part.type !== "opaque"));
  if (message.role === "tool") return null;
  return (
    <article class={`row earlier ${message.role === "user" ? "question" : "said-by-model"}`}>
      <div class="side"><span class="icon" aria-hidden="true">{message.role === "user" ? "?" : "◆"}</span><span class="label">{message.role === "user" ? "you" : "model"}</span></div>
      <div class="body">
        {text && <Prose text={text} />}
        {calls.length > 0 && <p class="faint">called <Shown text={calls.map((part) => part.name).join(", ")} /></p>}
      </div>
    </article>
  );
}

function Composer({ placeholder, disabled = false, onSend }: { placeholder: string; disabled?: boolean; onSend(text: string): Promise<void> }) {
  const [text, setText] = useState("");
  const doing = useDoing();
  const box = useRef<HTMLTextAreaElement>(null);
  const sendIt = () => {
    if (!text.trim() || disabled) return;
    void doing.run(async () => {
      await onSend(text);
      setText("");
      box.current?.focus();
    });
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); sendIt(); }}>
      <textarea
        ref={box} rows={Math.min(8, text.split("\n").length + (text.length > 90 ? 1 : 0))} aria-label={placeholder} placeholder={placeholder} value={text} disabled={disabled}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); sendIt(); } }}
      />
      <button type="submit" class="main" disabled={doing.busy || disabled || !text.trim()}>Send</button>
      <Failure error={doing.error} />
    </form>
  );
}
