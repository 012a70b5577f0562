/** Where the time of a run went: a bar for each step, call, wait and run below it. */

import { runPath } from "../api/client";
import type { Bar, Waterfall } from "../api/types";
import { useGet } from "../api/use";
import { Failure } from "../parts/frame";
import { dollars, grouped, lasting } from "../parts/figures";
import { Shown } from "../parts/text";
import { Windowed } from "../parts/windowed";
import { address } from "../router";

const WORDS: Record<string, string> = { attempt: "failed attempt: ", summary: "summary: ", run: "agent: ", wait: "waits: ", interrupted: "" };

/** The waterfall of a run, kept up to date while it is under way. */
export function WaterfallView({ run, live, now }: { run: string; live: boolean; now: number }) {
  const asked = useGet<Waterfall>(runPath(run, "waterfall"), {}, { every: live ? 1500 : 0, news: live ? 0 : now });
  if (!asked.data) return <Failure error={asked.error} onAgain={asked.again} />;
  const { bars, seconds, waited } = asked.data;
  const idle = bars.filter((bar) => bar.depth === 0 && (bar.kind === "wait" || bar.kind === "interrupted"));
  const starts = bars.map((bar) => bar.start - idle.reduce((sum, wait) => sum + Math.min(wait.seconds ?? 0, Math.max(0, bar.start - wait.start)), 0));
  const whole = Math.max(...bars.map((bar, at) => starts[at]! + (bar.seconds ?? 0)), live ? seconds - waited : 0, 0.001);
  const rows = bars.map((bar, at) => ({ bar, start: starts[at]!, at }));
  return (
    <div class="waterfall">
      <p class="faint">
        {lasting(seconds)} in all{waited > 0 && <>, of which nobody worked on it for {lasting(waited)} (not in the bars)</>}
        {bars.some((bar) => bar.shared) && "; what is marked with * was done and paid in the run that it is a fork of"}
      </p>
      <Axis whole={whole} />
      <Windowed
        items={rows} keyOf={(row) => String(row.at)} likely={26} label="Waterfall"
        render={({ bar, start }) => <BarRow bar={bar} start={start} whole={whole} run={run} live={live} />}
      />
    </div>
  );
}

function Axis({ whole }: { whole: number }) {
  return (
    <div class="axis faint" aria-hidden="true">
      <span />
      <span class="ticks">{[0, 0.25, 0.5, 0.75, 1].map((part) => <span>{lasting(whole * part)}</span>)}</span>
      <span />
    </div>
  );
}

function BarRow({ bar, start, whole, run, live }: { bar: Bar; start: number; whole: number; run: string; live: boolean }) {
  const long = bar.seconds === null ? (live ? whole - start : 0) : bar.seconds;
  const told = `${WORDS[bar.kind] ?? ""}${bar.name}`;
  const figures = [
    `${bar.shared ? "*" : ""}${bar.seconds === null ? "under way" : lasting(bar.seconds)}`,
    bar.usage ? `${bar.usage.estimated ? "~" : ""}${grouped((bar.usage.input_tokens ?? 0) + (bar.usage.output_tokens ?? 0))}` : "",
    bar.usage ? dollars(bar.cost) : "",
  ];
  const step = /^step (\d+)$/.exec(bar.name);
  const to = bar.run_id && bar.run_id !== run ? address("runs", bar.run_id) : step && bar.kind === "step" ? address("runs", run, "steps", step[1]!) : null;
  const hidden = bar.kind === "interrupted" || (bar.kind === "wait" && bar.depth === 0);
  return (
    <div class={`bar-row of-${bar.kind}${bar.failed ? " failed" : ""}`}>
      <span class="name" style={{ paddingLeft: `${bar.depth * 0.9}rem` }} title={told}>
        {to ? <a data-page="1" href={to}><Shown text={told} /></a> : <Shown text={told} />}
        {bar.failed && <span class="unseen"> failed</span>}
      </span>
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
        {!hidden && <rect x={Math.min(996, (start / whole) * 1000)} width={Math.max(4, (long / whole) * 1000)} y={bar.kind === "step" ? 4 : 0} height={bar.kind === "step" ? 2 : 10} />}
      </svg>
      <span class="figures">{figures.map((one) => <span>{one}</span>)}</span>
    </div>
  );
}
