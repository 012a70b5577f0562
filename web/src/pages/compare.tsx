/** Two runs side by side: what they took, and where they part. */

import { useState } from "preact/hooks";
import { runPath } from "../api/client";
import type { Run, RunInFull } from "../api/types";
import { useGet } from "../api/use";
import { Failure, Field, Status, useTitle } from "../parts/frame";
import { dollars, grouped, lasting, moment } from "../parts/figures";
import { aligned } from "../parts/lines";
import { Shown } from "../parts/text";
import { laidOut, isJson } from "../api/json";
import { visibleJson } from "../parts/visible";
import { address, go, usePlace } from "../router";

interface Row {
  step: number;
  what: string;
  a: string | null;
  b: string | null;
}

interface Diff {
  rows: Row[];
  at: number | null;
}

/** The page of a comparison of two runs. */
export function ComparePage() {
  useTitle("Compare runs");
  const { query } = usePlace();
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  const set = (one: string, other: string) => go(`${address("compare")}?${new URLSearchParams({ a: one, b: other })}`, { instead: true });
  return (
    <div class="page-scroll compare-page">
      <h1>Compare two runs</h1>
      <div class="two">
        <Choose label="A" value={a} onChoose={(id) => set(id, b)} />
        <Choose label="B" value={b} onChoose={(id) => set(a, id)} />
      </div>
      {a && b ? <Compared a={a} b={b} key={`${a} ${b}`} /> : <p class="nothing">Choose two runs.</p>}
    </div>
  );
}

function Choose({ label, value, onChoose }: { label: string; value: string; onChoose(id: string): void }) {
  const listed = useGet<{ runs: Run[] }>("api/runs", { limit: 100 });
  const runs = listed.data?.runs ?? [];
  return (
    <Field label={`Run ${label}`}>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">…</option>
        {value && !runs.some((run) => run.id === value) && <option value={value}>{value}</option>}
        {runs.map((run) => <option value={run.id}>{moment(run.started)} · {run.status} · {run.question.slice(0, 70)}</option>)}
      </select>
    </Field>
  );
}

function Compared({ a, b }: { a: string; b: string }) {
  const [one, other] = [useGet<RunInFull>(runPath(a)), useGet<RunInFull>(runPath(b))];
  const diff = useGet<Diff>("api/diff", { a, b });
  const [every, setEvery] = useState(false);
  const rows = diff.data?.rows ?? [];
  const differing = rows.filter((row) => row.a !== row.b);
  const shown = every ? rows : differing;
  const first = diff.data?.at === null || diff.data === null ? null : rows[diff.data.at];
  return (
    <>
      <Failure error={one.error ?? other.error ?? diff.error} onAgain={() => { one.again(); other.again(); diff.again(); }} />
      {one.data && other.data && <Figures a={one.data} b={other.data} />}
      {diff.data && (
        <>
          <p role="status">
            {first ? <>They part in step {first.step}: what was {first.what} differs.</> : <strong>They are the same, but for times, tokens and costs.</strong>}
          </p>
          <div class="chips"><button type="button" class="chip" aria-pressed={every} onClick={() => setEvery(!every)}>With what is the same</button></div>
          <div class="side-by-side">
            {shown.map((row) => <RowView row={row} first={row === first} a={a} b={b} />)}
          </div>
        </>
      )}
    </>
  );
}

function Figures({ a, b }: { a: RunInFull; b: RunInFull }) {
  const tokens = (run: RunInFull) => (run.total?.usage.input_tokens ?? 0) + (run.total?.usage.output_tokens ?? 0);
  const rows: [string, (run: RunInFull) => preact.ComponentChildren][] = [
    ["run", (run) => <a data-page="1" href={address("runs", run.id)}>{run.id}</a>],
    ["status", (run) => <Status status={run.status} />], ["question", (run) => <Shown text={run.question} prose />], ["agent", (run) => <Shown text={run.agent} />],
    ["model", (run) => <Shown text={run.model} />], ["steps", (run) => grouped(run.steps)], ["calls", (run) => grouped(run.calls)],
    ["tokens", (run) => grouped(tokens(run))], ["cost", (run) => dollars(run.total?.cost)], ["time", (run) => lasting(run.seconds)],
  ];
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Figures of both runs">
      <table class="both">
        <thead><tr><td /><th scope="col">A</th><th scope="col">B</th></tr></thead>
        <tbody>{rows.map(([name, of]) => <tr><th scope="row">{name}</th><td>{of(a)}</td><td>{of(b)}</td></tr>)}</tbody>
      </table>
    </div>
  );
}

function RowView({ row, first, a, b }: { row: Row; first: boolean; a: string; b: string }) {
  const same = row.a === row.b;
  const lines = same ? [] : aligned(readable(row.a ?? ""), readable(row.b ?? ""));
  return (
    <article class={`pair${first ? " parts" : ""}${same ? " same" : ""}`} aria-label={`Step ${row.step}, ${row.what}${same ? ", the same" : ""}`}>
      <header>
        {row.step >= 0 && <a data-page="1" href={address("runs", a, "steps", row.step)}>step {row.step}</a>} <strong>{row.what}</strong>
        {first && <span class="state failed"> they part here</span>} <a class="unseen" data-page="1" href={address("runs", b, "steps", row.step)}>the same step of B</a>
      </header>
      {same ? <pre class="half whole"><Shown text={readable(row.a ?? "")} /></pre> : (
        <>
          <Half lines={lines} side="a" none={row.a === null} />
          <Half lines={lines} side="b" none={row.b === null} />
        </>
      )}
    </article>
  );
}

function Half({ lines, side, none }: { lines: ReturnType<typeof aligned>; side: "a" | "b"; none: boolean }) {
  if (none) return <p class="half faint">nothing</p>;
  return (
    <pre class="half" role="group" aria-label={side.toUpperCase()}>
      {lines.filter((line) => line.side === "both" || line.side === side).map((line) => (
        <span class={line.side === "both" ? undefined : `line ${side}`}>
          {line.side !== "both" && <span class="unseen">{side === "a" ? "only in A: " : "only in B: "}</span>}
          <Shown text={line.text} />{"\n"}
        </span>
      ))}
    </pre>
  );
}

function readable(text: string): string {
  return /^[[{]/.test(text) && isJson(text) ? visibleJson(laidOut(text)) : text;
}
