/** The story of a run: a row for everything that happened, one after the other. */

import { read } from "../api/json";
import type { Content, Pending, Run } from "../api/types";
import { Fold } from "../parts/frame";
import { count, dollars, grouped, lasting, moment } from "../parts/figures";
import { comparisonIn, ComparisonView } from "../parts/comparison";
import { Prose } from "../parts/prose";
import { Contents, Media, Shown, Verbatim } from "../parts/text";
import { visible } from "../parts/visible";
import { address } from "../router";
import { Approval } from "./approval";
import { because, textOf, type CallState, type Item } from "./fold";

export interface Showing {
  run: string;
  pending: readonly Pending[];
  /** The runs that work for this one. */
  below: readonly Run[];
  onDecided(refused: Error | null): void;
  onAsk?: ((question: string) => void) | undefined;
  /** Shown as a conversation: without headings of steps. */
  chat?: boolean;
}

/** One item of the story. */
export function Row({ item, showing }: { item: Item; showing: Showing }) {
  switch (item.kind) {
    case "question":
      return (
        <article class="row question">
          <Side icon="?" at={item.at} label={item.by || "question"} />
          <div class="body">
            <Prose text={item.text} />
            {item.images.map((part) => <Media part={part} />)}
            {!showing.chat && (
              <p class="faint">
                to <Shown text={item.agent || "an agent"} /> · <Shown text={item.model} />
                {item.earlier > 0 && ` · after ${count(item.earlier, "earlier message")}`}
              </p>
            )}
            {!showing.chat && item.instructions && <Fold title="Instructions">{() => <Verbatim text={item.instructions} label="instructions" />}</Fold>}
          </div>
        </article>
      );
    case "step":
      return showing.chat ? null : <StepRow item={item} run={showing.run} />;
    case "thinking":
      return (
        <article class="row thinking">
          <Side icon="…" at={item.at} label="thinking" />
          <div class="body">
            {item.live ? <p class="live-text"><Shown text={item.text} prose /></p> : <Fold title={`Thought ${count(item.text.split(/\s+/).length, "word")}`}>{() => <Prose text={item.text} />}</Fold>}
          </div>
        </article>
      );
    case "text":
      return (
        <article class={`row said-by-model${item.live ? " live" : ""}`}>
          <Side icon="◆" at={item.at} label="model" />
          <div class="body"><Prose text={item.text} /></div>
        </article>
      );
    case "call":
      return <CallRow call={item.call} at={item.at} showing={showing} />;
    case "said":
      return (
        <article class="row question">
          <Side icon="+" at={item.at} label={item.by || "said"} />
          <div class="body"><Prose text={item.text} /></div>
        </article>
      );
    case "note":
      return (
        <article class={`row note ${item.tone}`}>
          <Side icon={item.tone === "plain" ? "·" : "!"} at={item.at} label="" />
          <div class="body">
            <Shown text={item.text} prose />
            {item.detail && <div class="faint"><Shown text={item.detail} prose /></div>}
          </div>
        </article>
      );
    case "end":
      return (
        <article class={`row end ${item.stop.reason}`}>
          <Side icon="■" at={item.at} label="end" />
          <div class="body">
            {showing.chat && item.stop.reason === "answered" ? null : <strong>{because(item.stop)}</strong>}{" "}
            {item.stop.advice && <Shown text={item.stop.advice} prose />}
            {item.output !== null && item.output !== undefined && item.output !== "" && typeof item.output !== "string" && <Contents content={JSON.stringify(item.output)} label="output" />}
          </div>
        </article>
      );
  }
}

function Side({ icon, at, label }: { icon: string; at: number; label: string }) {
  return (
    <div class="side">
      <span class="icon" aria-hidden="true">{icon}</span>
      <span class="label"><Shown text={label} /></span>
      <time class="faint" dateTime={at ? new Date(at * 1000).toISOString() : ""}>{moment(at)}</time>
    </div>
  );
}

function StepRow({ item, run }: { item: Extract<Item, { kind: "step" }>; run: string }) {
  const { usage } = item;
  const cached = usage?.cache_read_tokens ?? 0;
  return (
    <article class="row step">
      <h2>
        <a data-page="1" href={address("runs", run, "steps", item.number)}>Step {item.number}</a>
      </h2>
      <span class="faint">
        <Shown text={item.model} />
        {usage && (
          <>
            {" · "}{grouped(usage.input_tokens ?? 0)} in{cached > 0 && ` (${grouped(cached)} cached)`}, {grouped(usage.output_tokens ?? 0)} out
            {usage.estimated && " (estimated)"} · {item.cost === undefined ? "" : dollars(item.cost)}
            {item.ended !== null && ` · ${lasting(item.ended - item.at)}`}
          </>
        )}
        {item.landing && ` · the last call, without tools: ${because(item.landing)}`}
        {item.withheld.length > 0 && ` · withheld: ${visible(item.withheld.join(", "))}`}
      </span>
      <span class="faint why">{item.decision?.verdict === "land" ? `lands: ${visible(item.decision.why ?? "")}` : ""}</span>
    </article>
  );
}

const CALL_WORDS: Record<CallState["status"], string> = {
  asked: "asked for", running: "under way", waiting: "waits", done: "done", failed: "failed", refused: "not made", interrupted: "cut off",
};

function CallRow({ call, at, showing }: { call: CallState; at: number; showing: Showing }) {
  const pending = call.status === "waiting" ? showing.pending.filter((one) => belongs(one, call)) : [];
  const found = call.status === "done" ? comparisonIn(call.app, parsed(call.result)) : null;
  const below = call.run || showing.below.find((one) => typeof one.parent === "object" && one.parent?.run_id === showing.run && one.parent.step === call.step && one.parent.call_id === call.id)?.id;
  const long = textOf(call.result).length > 160 || Array.isArray(call.result);
  return (
    <article class={`row call ${call.status}`} id={`call-${call.id}`}>
      <Side icon="→" at={call.started ?? at} label="call" />
      <div class="body">
        <header>
          <strong class="tool"><Shown text={call.name || call.id} /></strong>
          <span class={`state ${call.status}`}>{CALL_WORDS[call.status]}</span>
          {call.started !== null && call.ended !== null && <span class="faint">{lasting(call.ended - call.started)}</span>}
          {below && <a data-page="1" href={address("runs", below)}>its run</a>}
        </header>
        {!pending.length && <Arguments text={call.edited ?? call.arguments} />}
        {call.edited !== null && <Fold title="What the model had asked for">{() => <Arguments text={call.arguments} />}</Fold>}
        {call.decided && <p class="faint"><Shown text={call.decided} prose /></p>}
        {call.why && !pending.length && <p class="faint"><Shown text={call.why} prose /></p>}
        {call.progress && <p class="progress"><Shown text={call.progress} prose /></p>}
        {pending.map((one) => <Approval run={showing.run} pending={one} key={one.fingerprint} onDecided={showing.onDecided} />)}
        {found && <ComparisonView found={found} onAsk={showing.onAsk} />}
        {call.result !== null &&
          (found || long ? (
            <Fold title={<>Result <span class="faint glance">{glance(call.result)}</span></>}>{() => <Result call={call} />}</Fold>
          ) : (
            <p class={`result ${call.status}`}><span aria-hidden="true">⇒ </span><Shown text={textOf(call.result)} /></p>
          ))}
      </div>
    </article>
  );
}

function Result({ call }: { call: CallState }) {
  return (
    <>
      <Contents content={call.result} label={`result of ${call.name}`} />
      {call.raised && <p class="faint">raised by <Shown text={call.raised} /></p>}
    </>
  );
}

/** Arguments on a line where they fit on one. */
export function Arguments({ text }: { text: string }) {
  if (text === "" || text === "{}") return <p class="faint">no arguments</p>;
  if (text.length <= 110 && !text.includes("\n")) return <code class="arguments"><Shown text={text} /></code>;
  return <Verbatim text={text} label="arguments" json />;
}

function glance(content: Content): string {
  const text = visible(textOf(content).slice(0, 200)).replace(/\s+/g, " ");
  return text.length > 90 ? `${text.slice(0, 89)}…` : text;
}

/** What a result says, if it is a JSON object. */
export function parsed(content: Content | null): unknown {
  if (typeof content !== "string" || !content.startsWith("{")) return null;
  try {
    return read(content);
  } catch {
    return null;
  }
}

/** Whether what waits is this call, or a call of the run that works on it. */
function belongs(pending: Pending, call: CallState): boolean {
  return decoded(pending.call.split("/")[0] ?? "") === call.id;
}

/** Names of calls stand escaped where they are decided: by their letters they are those of the journal. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
