/** A step's inside: why it was made, what was sent, what came back, what its calls did, and what it took. */

import { useState } from "preact/hooks";
import { runPath } from "../api/client";
import { written } from "../api/json";
import type { Amount, Check, Content, Message, Part, Stop, Usage } from "../api/types";
import { useGet } from "../api/use";
import { comparisonIn, ComparisonView } from "../parts/comparison";
import { Facts, Failure, Fold } from "../parts/frame";
import { count, dollars, grouped, lasting } from "../parts/figures";
import { Prose } from "../parts/prose";
import { Contents, Media, Shown, Verbatim } from "../parts/text";
import { address } from "../router";
import { because } from "./fold";
import { Arguments, parsed } from "./story";

interface CallForm {
  id: string;
  tool: string;
  arguments: unknown;
  arguments_json?: string;
  result: Content | null;
  app?: unknown;
  status: string;
  is_error: boolean;
  seconds: number | null;
  run: string;
}

interface Step {
  model: string;
  seconds: number;
  finish: string;
  usage: Usage;
  cost: Amount;
  calls: CallForm[];
}

export interface Inside {
  number: number;
  event: number;
  request: {
    messages: Message[];
    tools: { name: string; description?: string; input_schema?: unknown }[];
    tools_described: boolean;
    tool_choice: string;
    settings: Record<string, unknown>;
    output_schema: unknown;
    model: string;
  };
  changed: { same: number; removed: number; added: number; tools: string[]; settings: boolean };
  decision: { verdict?: string; why?: string; checks?: Check[]; landing?: Stop | null; note?: string; withheld?: string[] };
  step: Step | null;
  reply: { content: Part[] } | null;
  failed: { attempt?: number; error: { kind: string; message: string } }[];
  window: { used: number | null; size: number | null } | null;
}

/** Shows step `number` of a run. */
export function InsideView({ run, number, steps, now, onFork }: { run: string; number: number; steps: number; now: number; onFork(at: number): void }) {
  const asked = useGet<Inside>(runPath(run, "steps", number), {}, { news: now });
  const step = asked.data;
  return (
    <div class="inside">
      <nav class="step-nav" aria-label="Steps">
        {number > 0 ? <a data-page="1" href={address("runs", run, "steps", number - 1)}>← Step {number - 1}</a> : <span />}
        <h2>Step {number}</h2>
        {number + 1 < steps ? <a data-page="1" href={address("runs", run, "steps", number + 1)}>Step {number + 1} →</a> : <span />}
        <button type="button" onClick={() => onFork(number)}>Fork from here …</button>
      </nav>
      <Failure error={asked.error} onAgain={asked.again} />
      {step && (
        <>
          {step.step && <Spent step={step.step} window={step.window} />}
          <Why decision={step.decision} />
          <Request step={step} before={number > 0} />
          <Response step={step} />
          <Calls calls={step.step?.calls ?? []} />
        </>
      )}
    </div>
  );
}

function Spent({ step, window }: { step: Step; window: Inside["window"] }) {
  const { usage } = step;
  const [all, cached, output] = [usage.input_tokens ?? 0, usage.cache_read_tokens ?? 0, usage.output_tokens ?? 0];
  const { used, size } = window ?? { used: null, size: null };
  return (
    <section aria-label="What it took">
      <Facts facts={[
        ["model", <Shown text={step.model} />], ["took", lasting(step.seconds)], ["cost", dollars(step.cost)],
        ["sent", `${grouped(all)} tokens`], ["of these from the cache", all ? `${grouped(cached)} (${Math.round((cached / all) * 100)} %)` : ""],
        ["written to the cache", usage.cache_write_tokens ? grouped(usage.cache_write_tokens) : ""],
        ["came back", `${grouped(output)} tokens`], ["of these thinking", usage.reasoning_tokens ? grouped(usage.reasoning_tokens) : ""],
        ["counted", usage.estimated ? "in part estimated" : ""],
      ]} />
      {size ? (
        <p class="window-meter">
          <label>
            The window is {(((used ?? 0) / size) * 100).toFixed(1)} % full: {grouped(used)} of {grouped(size)} tokens
            <meter min={0} max={size} high={size * 0.8} value={used ?? 0} />
          </label>
        </p>
      ) : <p class="faint">How large the model's window is, is not known.</p>}
    </section>
  );
}

function Why({ decision }: { decision: Inside["decision"] }) {
  const checks = decision.checks ?? [];
  return (
    <section aria-label="Why it went on">
      <h3>Why it went on</h3>
      <p>
        {decision.landing ? <>It was to be the last call, without tools: <Shown text={because(decision.landing)} />.</>
          : decision.verdict === "go" ? "None of what could have stopped it held." : <Shown text={decision.why ?? ""} />}
        {decision.note && <> The model was told: <Shown text={decision.note} prose /></>}
        {decision.withheld?.length ? <> Tools withheld: <Shown text={decision.withheld.join(", ")} />.</> : null}
      </p>
      {checks.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="What was looked at before this step">
          <table>
            <thead><tr><th scope="col">looked at</th><th scope="col" class="n">found</th><th scope="col" class="n">bound</th><th scope="col">held?</th></tr></thead>
            <tbody>{checks.map((check) => (
              <tr class={check.met ? "met" : undefined}>
                <th scope="row"><Shown text={check.name} /></th><td class="n"><Shown text={figure(check.value)} /></td><td class="n"><Shown text={figure(check.bound)} /></td><td>{check.met ? "yes: it stops" : "no"}</td>
              </tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function figure(value: Amount | undefined): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toFixed(3))) : String(value);
}

function Request({ step, before }: { step: Inside; before: boolean }) {
  const [way, setWay] = useState<"changed" | "all" | "raw">("changed");
  const { request, changed } = step;
  const added = request.messages.slice(changed.same);
  return (
    <section aria-label="Request">
      <h3>Request</h3>
      <div class="chips" role="group" aria-label="How the messages are shown">
        {([["changed", "What changed"], ["all", `All ${grouped(request.messages.length)} messages`], ["raw", "As JSON"]] as const).map(([name, label]) => (
          <button type="button" class="chip" aria-pressed={way === name} onClick={() => setWay(name)}>{label}</button>
        ))}
      </div>
      {way === "raw" && <Verbatim text={written(request)} label="request" />}
      {way === "all" && request.messages.map((message, at) => <MessageView message={message} number={at} />)}
      {way === "changed" && (
        <>
          {before && <p class="faint">{count(changed.same, "message")} as in the step before{changed.removed > 0 && `, ${count(changed.removed, "message")} of it no longer sent`}.</p>}
          {changed.tools.length > 0 && <p class="faint">Tools offered in one of the two steps only: <Shown text={changed.tools.join(", ")} />.</p>}
          {changed.settings && <p class="faint">The settings are others than in the step before.</p>}
          {added.map((message, at) => <MessageView message={message} number={changed.same + at} sign={before ? "+" : ""} />)}
          {!added.length && <p class="faint">Nothing was added.</p>}
        </>
      )}
      {!request.tools_described && <p class="faint">The agent of this run is not here, so what its tools are is not known.</p>}
      <Fold title={`${count(request.tools.length, "tool")} offered${request.tool_choice !== "auto" ? ` (choice: ${request.tool_choice})` : ""}`}>
        {() => request.tools.map((tool) => (
          <div class="tool-told">
            <strong class="tool"><Shown text={tool.name} /></strong> <Shown text={tool.description ?? ""} prose />
            {tool.input_schema !== undefined && <Fold title="Schema">{() => <Verbatim text={written(tool.input_schema)} label={`schema of ${tool.name}`} />}</Fold>}
          </div>
        ))}
      </Fold>
      <Fold title="Settings">{() => <Verbatim text={written(request.settings ?? {})} label="settings" />}</Fold>
    </section>
  );
}

/** A message as the model was sent it. */
export function MessageView({ message, number, sign = "" }: { message: Message; number?: number; sign?: string }) {
  const parts: Part[] = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
  return (
    <div class={`message ${message.role} ${sign === "+" ? "added" : sign === "−" ? "removed" : ""}`}>
      <header>
        {sign && <span class="sign">{sign}<span class="unseen">{sign === "+" ? " added" : " removed"}</span></span>}
        {number !== undefined && <span class="faint">[{number}]</span>} <strong>{message.role}</strong>
        {message.name && <span class="tool"><Shown text={message.name} /></span>} {message.is_error && <span class="state failed">error</span>}
      </header>
      {parts.map((part) =>
        part.type === "text" ? <Verbatim text={part.text ?? ""} label={`${message.role} message`} json={message.role === "tool"} />
        : part.type === "tool_call" ? <div class="asked-call"><strong class="tool"><Shown text={part.name ?? ""} /></strong> <Arguments text={part.arguments ?? ""} /></div>
        : part.type === "thinking" ? <Fold title="Thinking">{() => <Verbatim text={part.text ?? ""} label="thinking" />}</Fold>
        : part.type === "image" || part.type === "file" ? <Media part={part} />
        : <Verbatim text={written(part)} label={part.type} />,
      )}
    </div>
  );
}

function Response({ step }: { step: Inside }) {
  const [raw, setRaw] = useState(false);
  const { reply } = step;
  return (
    <section aria-label="Response">
      <h3>Response</h3>
      {step.failed.map((one) => <p class="wrong">Attempt {one.attempt ?? 1} failed ({one.error.kind}): <Shown text={one.error.message} prose /></p>)}
      {reply === null ? <p class="faint">There is none yet.</p> : (
        <>
          <div class="chips"><button type="button" class="chip" aria-pressed={raw} onClick={() => setRaw(!raw)}>As JSON</button></div>
          {raw ? <Verbatim text={written(reply)} label="response" /> : reply.content.map((part) =>
            part.type === "text" ? <Prose text={part.text ?? ""} />
            : part.type === "thinking" ? <Fold title="Thinking">{() => <Prose text={part.text ?? ""} />}</Fold>
            : part.type === "tool_call" ? <div class="asked-call">asks for <strong class="tool"><Shown text={part.name ?? ""} /></strong> <Arguments text={part.arguments ?? ""} /></div>
            : <Verbatim text={written(part)} label={part.type} />)}
          {step.step && <p class="faint">ended with: {step.step.finish}</p>}
        </>
      )}
    </section>
  );
}

function Calls({ calls }: { calls: CallForm[] }) {
  if (!calls.length) return null;
  return (
    <section aria-label="Calls">
      <h3>{count(calls.length, "call")}</h3>
      {calls.map((call) => {
        const found = comparisonIn(call.app, parsed(call.result));
        return (
          <article class={`inside-call ${call.is_error ? "failed" : ""}`}>
            <header>
              <strong class="tool"><Shown text={call.tool} /></strong> <span class={`state ${call.is_error ? "failed" : "done"}`}>{call.status}</span>
              {call.seconds !== null && <span class="faint"> {lasting(call.seconds)}</span>} {call.run && <a data-page="1" href={address("runs", call.run)}>its run</a>}
            </header>
            <h4>Arguments</h4>
            <Verbatim text={call.arguments_json ?? written(call.arguments)} label={`arguments of ${call.tool}`} json />
            <h4>Result</h4>
            {call.result === null ? <p class="faint">There is none yet.</p> : <Contents content={call.result} label={`result of ${call.tool}`} />}
            {found && <ComparisonView found={found} />}
          </article>
        );
      })}
    </section>
  );
}
