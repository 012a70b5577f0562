/** Figures over many runs: what they took, how they ended, and by which model, agent, tool and day. */

import { useState } from "preact/hooks";
import type { Amount } from "../api/types";
import { useGet } from "../api/use";
import { Facts, Failure, Field, useTitle } from "../parts/frame";
import { dollars, grouped, lasting } from "../parts/figures";
import { Shown } from "../parts/text";
import { address } from "../router";
import { useAgents } from "./runs";

interface Spread {
  total: number;
  p50: number;
  p95: number;
  most: number;
}

interface Money {
  total: Amount;
  p50: Amount;
  p95: Amount;
  most: Amount;
  unknown: number;
}

interface Group {
  name: string;
  count: number;
  failed: number;
  open: number;
  tokens: Spread | null;
  cost: Money | null;
  seconds: Spread | null;
}

interface Statistics {
  runs: number;
  ended: Record<string, number>;
  steps: Spread | null;
  tool_calls: Spread | null;
  tokens: Spread | null;
  seconds: Spread | null;
  cost: Money | null;
  by_model: Group[];
  by_agent: Group[];
  by_tool: Group[];
  by_day: Group[];
}

const DAYS: [string, string][] = [["1", "in the last day"], ["7", "in the last week"], ["30", "in the last month"], ["", "ever"]];

/** The page of figures. */
export function FiguresPage() {
  useTitle("Figures");
  const [days, setDays] = useState("7");
  const [agent, setAgent] = useState("");
  const agents = useAgents();
  const since = days ? Math.floor(Date.now() / 60000) * 60 - Number(days) * 86400 : "";
  const asked = useGet<Statistics>("api/statistics", { since, agent });
  const found = asked.data;
  return (
    <div class="page-scroll figures-page">
      <h1>Figures</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Field label="Runs that began"><select value={days} onChange={(event) => setDays(event.currentTarget.value)}>{DAYS.map(([value, label]) => <option value={value}>{label}</option>)}</select></Field>
        <Field label="Agent"><select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}><option value="">all</option>{(agents.data ?? []).map((one) => <option value={one.name}>{one.name}</option>)}</select></Field>
      </form>
      <Failure error={asked.error} onAgain={asked.again} />
      {asked.loading && !found && <p role="status">Reading the runs …</p>}
      {found && (
        <>
          <Facts facts={[["runs", grouped(found.runs)], ["tokens", grouped(found.tokens?.total ?? 0)], ["cost", found.cost ? dollars(found.cost.total) : "–"], ["tool calls", grouped(found.tool_calls?.total ?? 0)]]} />
          {found.cost && found.cost.unknown > 0 && <p class="faint">Of {grouped(found.cost.unknown)} of them the cost is not known.</p>}
          <Ended found={found} />
          <Spreads found={found} />
          <Days groups={found.by_day} />
          <Groups title="By model" noun="model calls" groups={found.by_model} />
          <Groups title="By agent" noun="runs" groups={found.by_agent} link="agent" />
          <Groups title="By tool" noun="calls" groups={found.by_tool} />
        </>
      )}
    </div>
  );
}

function Ended({ found }: { found: Statistics }) {
  const most = Math.max(...Object.values(found.ended), 1);
  if (!found.runs) return <p class="nothing">There is no run in this time.</p>;
  return (
    <section aria-label="How they ended">
      <h2>How they ended</h2>
      <table class="bars">
        <tbody>{Object.entries(found.ended).sort(([, a], [, b]) => b - a).map(([name, count]) => (
          <tr><th scope="row">{name}</th><td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={Math.max(0.8, (count / most) * 100)} height="10" class={name} /></svg></td><td class="n">{grouped(count)}</td></tr>
        ))}</tbody>
      </table>
    </section>
  );
}

function Spreads({ found }: { found: Statistics }) {
  const rows: [string, Spread | Money | null, (value: Amount) => string][] = [
    ["steps", found.steps, grouped], ["tool calls", found.tool_calls, grouped], ["tokens", found.tokens, grouped],
    ["time", found.seconds, (value) => lasting(Number(value))], ["cost", found.cost, dollars],
  ];
  return (
    <section aria-label="Of one run">
      <h2>Of one run</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Spread over runs">
        <table>
          <thead><tr><td /><th scope="col" class="n">half of them at most</th><th scope="col" class="n">95 % at most</th><th scope="col" class="n">most</th><th scope="col" class="n">all together</th></tr></thead>
          <tbody>{rows.flatMap(([name, spread, told]) => (spread ? [
            <tr><th scope="row">{name}</th><td class="n">{told(spread.p50)}</td><td class="n">{told(spread.p95)}</td><td class="n">{told(spread.most)}</td><td class="n">{told(spread.total)}</td></tr>,
          ] : []))}</tbody>
        </table>
      </div>
    </section>
  );
}

function Days({ groups }: { groups: Group[] }) {
  if (groups.length < 2) return null;
  const most = Math.max(...groups.map((group) => group.count), 1);
  const width = 100 / groups.length;
  return (
    <section aria-label="By day">
      <h2>By day</h2>
      <svg class="days" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={groups.map((group) => `${group.name}: ${group.count} runs, ${group.failed} failed`).join("; ")}>
        {groups.map((group, at) => {
          const [all, failed] = [(group.count / most) * 38, (group.failed / most) * 38];
          return (
            <g>
              <title>{`${group.name}: ${group.count} runs, ${group.failed} failed`}</title>
              <rect x={at * width + width * 0.1} width={width * 0.8} y={40 - all} height={all} />
              <rect x={at * width + width * 0.1} width={width * 0.8} y={40 - failed} height={failed} class="failed" />
            </g>
          );
        })}
      </svg>
      <p class="ends faint"><span>{groups[0]!.name}</span><span>{groups[groups.length - 1]!.name}</span></p>
    </section>
  );
}

function Groups({ title, noun, groups, link }: { title: string; noun: string; groups: Group[]; link?: string }) {
  if (!groups.length) return null;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${title}, table`}>
        <table>
          <thead><tr><th scope="col">name</th><th scope="col" class="n">{noun}</th><th scope="col" class="n">failed</th><th scope="col" class="n">tokens</th><th scope="col" class="n">cost</th><th scope="col" class="n">time, half at most</th><th scope="col" class="n">95 % at most</th></tr></thead>
          <tbody>{groups.map((group) => (
            <tr>
              <th scope="row">{link ? <a data-page="1" href={`${address("runs")}?${link}=${encodeURIComponent(group.name)}`}><Shown text={group.name || "(unknown)"} /></a> : <Shown text={group.name || "(unknown)"} />}</th>
              <td class="n">{grouped(group.count)}</td><td class={`n${group.failed ? " bad" : ""}`}>{grouped(group.failed)}</td>
              <td class="n">{group.tokens ? grouped(group.tokens.total) : ""}</td><td class="n">{group.cost ? dollars(group.cost.total) : ""}</td>
              <td class="n">{lasting(group.seconds?.p50)}</td><td class="n">{lasting(group.seconds?.p95)}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </section>
  );
}
