/** A call that waits for a person: the whole of it in view, and what may be said to it. */

import { useId, useState } from "preact/hooks";
import { Refused, runPath, send } from "../api/client";
import { isJson, laidOut } from "../api/json";
import type { Pending, Verdict } from "../api/types";
import { useDoing } from "../api/use";
import { Failure } from "../parts/frame";
import { Shown, Verbatim } from "../parts/text";
import { visibleJson } from "../parts/visible";

const WORDS: Record<Verdict, string> = {
  approve: "Approve", edit: "Edit …", deny: "Deny …", result: "Give a result …", again: "Run it again",
};

const WHY: Record<string, string> = {
  approval: "A person has to decide whether this call is made.",
  interrupted: "The call was cut off: nobody knows whether it was done.",
  result: "The result of this call comes from you.",
};

/** Shows a call and takes the decision; it holds for exactly the arguments that are shown. */
export function Approval({ run, pending, onDecided }: { run: string; pending: Pending; onDecided(refused: Error | null): void }) {
  const [writing, setWriting] = useState<"edit" | "deny" | "result" | null>(null);
  const doing = useDoing();
  const name = useId();
  const text = argumentsOf(pending);

  const decide = (verdict: Verdict, more: Record<string, string> = {}) =>
    doing.run(async () => {
      const fields = { call: JSON.stringify(pending.call), fingerprint: JSON.stringify(pending.fingerprint), verdict: JSON.stringify(verdict), ...more };
      const decision = Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}:${value}`).join(",");
      try {
        await send("POST", runPath(run, "decisions"), `{"decisions":[{${decision}}]}`);
      } catch (error) {
        // Of a call that somebody else has decided nothing is left here to say it.
        if (!(error instanceof Refused) || error.status !== 409) throw error;
        return onDecided(error);
      }
      onDecided(null);
    });

  return (
    <section class="approval" aria-labelledby={name}>
      <h3 id={name}>
        <Shown text={pending.tool} />
        {pending.effect && <span class={`effect ${pending.effect}`}><Shown text={pending.effect} /></span>}
      </h3>
      <p><Shown text={pending.question || (WHY[pending.why] ?? pending.why)} prose /></p>
      <Verbatim text={text} label={`arguments of ${pending.tool}`} json />
      {pending.found && <Verbatim text={pending.found} label="the result so far" json />}
      <p class="faint">
        call <code><Shown text={pending.call} /></code> · arguments <code>#{pending.fingerprint}</code>
        {pending.run ? <> · in run <code>{pending.run}</code></> : null}
      </p>
      {writing === null ? (
        <div class="buttons">
          {pending.allowed.map((verdict) => (
            <button
              type="button" key={verdict} disabled={doing.busy} class={verdict === "approve" || verdict === "again" ? "main" : verdict === "deny" ? "bad" : undefined}
              onClick={() => (verdict === "approve" || verdict === "again" ? decide(verdict) : setWriting(verdict))}
            >
              {WORDS[verdict]}
            </button>
          ))}
        </div>
      ) : (
        <Writing
          kind={writing} busy={doing.busy} first={writing === "edit" ? visibleJson(isJson(text) ? laidOut(text) : text) : ""} onBack={() => setWriting(null)}
          onDone={(written) =>
            writing === "edit" ? decide("edit", { arguments: written })
            : writing === "deny" ? decide("deny", { reason: JSON.stringify(written) })
            : decide("result", { result: isJson(written) ? written : JSON.stringify(written) })
          }
        />
      )}
      <Failure error={doing.error} />
    </section>
  );
}

const TITLES = {
  edit: ["Arguments, as a JSON object", "Approve with these arguments"],
  deny: ["Why not? The model is told this.", "Deny"],
  result: ["The result, as text or JSON", "Give this result"],
} as const;

function Writing({ kind, first, busy, onDone, onBack }: { kind: keyof typeof TITLES; first: string; busy: boolean; onDone(text: string): void; onBack(): void }) {
  const [text, setText] = useState(first);
  const [title, done] = TITLES[kind];
  const wrong = kind === "edit" ? wrongWith(text) : kind === "result" && !text.trim() ? "There is nothing in it yet." : "";
  const hint = useId();
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (!wrong) onDone(text); }}>
      <label class="field">
        <span>{title}</span>
        <textarea
          value={text} rows={kind === "edit" ? Math.min(18, Math.max(4, text.split("\n").length + 1)) : 3} spellcheck={kind === "deny"} dir={kind === "edit" ? "ltr" : "auto"}
          class={kind === "edit" ? "code" : undefined} aria-invalid={Boolean(wrong)} aria-describedby={hint}
          ref={(element) => { if (element && !element.dataset["met"]) { element.dataset["met"] = "1"; element.focus(); element.form?.scrollIntoView({ block: "nearest" }); } }}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <p id={hint} class={wrong ? "wrong" : "faint"} role={wrong ? "status" : undefined}>{wrong || (kind === "edit" ? "Escapes stand for characters that cannot be seen." : "")}</p>
      <div class="buttons">
        <button type="submit" class={kind === "deny" ? "bad" : "main"} disabled={busy || Boolean(wrong)}>{done}</button>
        <button type="button" onClick={onBack} disabled={busy}>Back</button>
      </div>
    </form>
  );
}

function wrongWith(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? "" : "Arguments are a JSON object: {…}.";
  } catch (error) {
    return `This is not JSON yet: ${(error as Error).message}`;
  }
}

/** The JSON text of what would be carried out, as the server has it. */
export function argumentsOf(pending: Pending): string {
  return pending.arguments_json ?? JSON.stringify(pending.arguments);
}
