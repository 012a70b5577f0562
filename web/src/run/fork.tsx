/** A fork: the run goes on from a step as a run of its own, with something changed. The run itself stays as it is. */

import { useState } from "preact/hooks";
import { runPath, send } from "../api/client";
import { isJson } from "../api/json";
import type { Limits, Run } from "../api/types";
import { useDoing } from "../api/use";
import { Dialog, Failure, Field } from "../parts/frame";
import { Shown } from "../parts/text";
import { Arguments } from "./story";
import { address, go } from "../router";
import { textOf, type Item } from "./fold";

interface Props {
  run: string;
  at: number;
  items: readonly Item[];
  onClose(): void;
}

/** Asks what is to be different, and makes the fork. */
export function ForkDialog({ run, at, items, onClose }: Props) {
  const [step, setStep] = useState(at);
  const [given, setGiven] = useState({ model: "", instructions: "", message: "" });
  const [limits, setLimits] = useState<Record<string, string>>({});
  const [results, setResults] = useState<Record<string, string>>({});
  const doing = useDoing();
  const steps = items.filter((item) => item.kind === "step").map((item) => item.step ?? 0);
  const calls = items.flatMap((item) => (item.kind === "call" && item.call.step === step - 1 && item.call.result !== null ? [item.call] : []));
  const set = (name: keyof typeof given) => (event: { currentTarget: { value: string } }) => setGiven({ ...given, [name]: event.currentTarget.value });

  const fork = () =>
    doing.run(async () => {
      const fields: string[] = [`"at":${step}`];
      for (const [name, value] of Object.entries(given)) if (value.trim()) fields.push(`"${name}":${JSON.stringify(value)}`);
      const changed = calls.filter((call) => results[call.id] !== undefined);
      if (changed.length)
        fields.push(`"tool_results":{${changed.map((call) => `${JSON.stringify(call.id)}:${asJson(results[call.id]!)}`).join(",")}}`);
      const bounds = limitsJson(limits);
      if (bounds) fields.push(`"limits":${bounds}`);
      const made = await send<Run>("POST", runPath(run, "fork"), `{${fields.join(",")}}`);
      onClose();
      go(address("runs", made.id));
    });

  return (
    <Dialog title="Fork this run" onClose={onClose} wide>
      <form onSubmit={(event) => { event.preventDefault(); void fork(); }}>
        <p class="faint">What was done before that step is taken over and not paid again. What stays empty stays as it was.</p>
        <Field label="From step" hint={calls.length ? "Calls of the step before it may have had other results: see below." : ""}>
          <select value={step} onChange={(event) => { setStep(Number(event.currentTarget.value)); setResults({}); }}>
            {steps.map((one) => <option value={one}>{one}</option>)}
            <option value={steps.length}>{steps.length} (after the last)</option>
          </select>
        </Field>
        <Field label="Say something more" hint="A message that the model is shown next."><textarea rows={2} value={given.message} onInput={set("message")} /></Field>
        <Field label="Instructions"><textarea rows={3} value={given.instructions} onInput={set("instructions")} /></Field>
        <Field label="Model" hint="By name, such as anthropic:claude-sonnet-4-5."><input value={given.model} onInput={set("model")} autocomplete="off" spellcheck={false} /></Field>
        <LimitFields limits={limits} onChange={setLimits} />
        {calls.map((call) => (
          <fieldset key={call.id}>
            <legend>Call <strong class="tool"><Shown text={call.name} /></strong> of step {step - 1}</legend>
            <Arguments text={call.edited ?? call.arguments} />
            {results[call.id] === undefined ? (
              <button type="button" onClick={() => setResults({ ...results, [call.id]: textOf(call.result) })}>Another result …</button>
            ) : (
              <Field label="Result instead">
                <textarea class="code" rows={5} value={results[call.id]} onInput={(event) => setResults({ ...results, [call.id]: event.currentTarget.value })} />
              </Field>
            )}
          </fieldset>
        ))}
        <Failure error={doing.error} />
        <div class="buttons"><button type="submit" class="main" disabled={doing.busy}>Fork</button><button type="button" onClick={onClose}>Cancel</button></div>
      </form>
    </Dialog>
  );
}

const NAMES: [keyof Limits, string][] = [
  ["steps", "Steps"], ["tool_calls", "Tool calls"], ["seconds", "Seconds"], ["usd", "Dollars"], ["tokens", "Tokens"],
];

/** Limits to be filled in; empty ones stay as they are. */
export function LimitFields({ limits, onChange }: { limits: Record<string, string>; onChange(limits: Record<string, string>): void }) {
  return (
    <fieldset class="limits">
      <legend>Limits</legend>
      {NAMES.map(([name, label]) => (
        <Field label={label} key={name}>
          <input inputMode="decimal" size={8} value={limits[name] ?? ""} pattern="[0-9]*\.?[0-9]*" onInput={(event) => onChange({ ...limits, [name]: event.currentTarget.value })} />
        </Field>
      ))}
    </fieldset>
  );
}

/** The limits that were filled in, as JSON with the digits that were typed; null if none was. Dollars are a text. */
export function limitsJson(limits: Record<string, string>): string | null {
  const filled = Object.entries(limits).filter(([, value]) => /^\d+(\.\d+)?$/.test(value.trim()));
  if (!filled.length) return null;
  return `{${filled.map(([name, value]) => `"${name}":${name === "usd" ? JSON.stringify(value.trim()) : value.trim()}`).join(",")}}`;
}

function asJson(text: string): string {
  return isJson(text) ? text : JSON.stringify(text);
}
