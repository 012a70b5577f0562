/** The runs of the journal: those that began last first, kept up to date, to be searched, filtered, opened and compared. */

import { useEffect, useState } from "preact/hooks";
import { get, send } from "../api/client";
import type { Agent, Run } from "../api/types";
import { useDoing, useGet } from "../api/use";
import { Failure, Field, Status, useTitle } from "../parts/frame";
import { dollars, grouped, lasting, moment } from "../parts/figures";
import { Shown } from "../parts/text";
import { Windowed } from "../parts/windowed";
import { address, go, usePlace } from "../router";

interface Listed {
  runs: Run[];
  next: string | null;
}

const STATUSES = ["running", "waiting", "finished", "stopped", "failed", "cancelled", "damaged"];
const DAYS: Record<string, number> = { "1": 1, "7": 7, "30": 30 };

/** The page of all runs. */
export function RunsPage() {
  useTitle("Runs");
  const { query } = usePlace();
  const wanted = { agent: query.get("agent") ?? "", status: query.get("status") ?? "", search: query.get("search") ?? "", days: query.get("days") ?? "" };
  const since = DAYS[wanted.days] ? Math.floor(Date.now() / 60000) * 60 - DAYS[wanted.days]! * 86400 : "";
  const filters = { agent: wanted.agent, status: wanted.status, search: wanted.search, since };
  const newest = useGet<Listed>("api/runs", { ...filters, limit: 100 }, { every: 2000 });
  const agents = useAgents();
  const [older, setOlder] = useState<{ key: string; runs: Run[]; next: string | null } | null>(null);
  const [chosen, setChosen] = useState<string[]>([]);
  const more = useDoing();
  const key = JSON.stringify({ ...wanted });
  const further = older?.key === key ? older : null;
  const first = newest.data?.runs ?? [];
  const known = new Set(first.map((run) => run.id));
  const runs = [...first, ...(further?.runs.filter((run) => !known.has(run.id)) ?? [])];
  const next = further ? further.next : (newest.data?.next ?? null);

  const set = (change: Partial<typeof wanted>) => {
    const filled = Object.entries({ ...wanted, ...change }).filter(([, value]) => value);
    go(`${address("runs")}?${new URLSearchParams(filled)}`, { instead: true });
  };
  const load = () =>
    more.run(async () => {
      const page = await get<Listed>("api/runs", { ...filters, limit: 200, before: next });
      setOlder({ key, runs: [...(further?.runs ?? []), ...page.runs], next: page.next });
    });

  return (
    <div class="runs-page">
      <h1 class="unseen">Runs</h1>
      <Ask agents={agents.data ?? []} />
      <form class="filters" role="search" aria-label="Filter runs" onSubmit={(event) => event.preventDefault()}>
        <Search text={wanted.search} onSearch={(search) => set({ search })} />
        <Field label="Agent">
          <select value={wanted.agent} onChange={(event) => set({ agent: event.currentTarget.value })}>
            <option value="">all</option>
            {[...new Set([...(agents.data ?? []).map((one) => one.name), wanted.agent])].filter(Boolean).map((name) => <option value={name}>{name}</option>)}
          </select>
        </Field>
        <Field label="Status">
          <select value={wanted.status} onChange={(event) => set({ status: event.currentTarget.value })}>
            <option value="">all</option>
            {STATUSES.map((name) => <option value={name}>{name}</option>)}
          </select>
        </Field>
        <Field label="Began">
          <select value={wanted.days} onChange={(event) => set({ days: event.currentTarget.value })}>
            <option value="">any time</option><option value="1">in the last day</option><option value="7">in the last week</option><option value="30">in the last month</option>
          </select>
        </Field>
        <button type="button" disabled={chosen.length !== 2} onClick={() => go(`${address("compare")}?a=${encodeURIComponent(chosen[0]!)}&b=${encodeURIComponent(chosen[1]!)}`)}>
          Compare {chosen.length === 2 ? "these two" : `two (${chosen.length} chosen)`}
        </button>
      </form>
      <Failure error={newest.error ?? agents.error} onAgain={newest.again} />
      {newest.data && runs.length === 0 && <p class="nothing">{Object.values(wanted).some(Boolean) ? "No run is like that." : "There is no run yet. Ask something above."}</p>}
      <div class="run-table">
        <div class="run-line heads" aria-hidden="true">
          <span /><span>Status</span><span>Question</span><span>Agent</span><span class="n">Steps</span><span class="n">Calls</span><span class="n" title="without the runs that work for it">Tokens</span><span class="n" title="without the runs that work for it">Cost</span><span class="n">Time</span><span class="n">Began</span>
        </div>
        <Windowed items={runs} keyOf={(run) => run.id} likely={44} label="Runs" render={(run) => (
          <Line run={run} chosen={chosen.includes(run.id)} onChoose={(on) => setChosen(on ? [...chosen, run.id].slice(-2) : chosen.filter((one) => one !== run.id))} />
        )} />
      </div>
      {next && <button type="button" class="quiet" onClick={load} disabled={more.busy}>Show earlier runs</button>}
      <Failure error={more.error} />
    </div>
  );
}

function Line({ run, chosen, onChoose }: { run: Run; chosen: boolean; onChoose(on: boolean): void }) {
  const seconds = run.status === "running" ? Date.now() / 1000 - run.started : run.seconds;
  const tokens = (run.own_usage?.input_tokens ?? 0) + (run.own_usage?.output_tokens ?? 0);
  return (
    <div class="run-line">
      <span><input type="checkbox" checked={chosen} aria-label={`Choose for comparing: ${run.question.slice(0, 60)}`} onChange={(event) => onChoose(event.currentTarget.checked)} /></span>
      <span><Status status={run.status} /></span>
      <span class="question"><a data-page="1" href={address("runs", run.id)}><Shown text={run.question.slice(0, 200) || run.id} prose /></a></span>
      <span class="agent"><Shown text={run.agent} /> <span class="faint"><Shown text={run.model} /></span></span>
      <span class="n" data-name="steps">{grouped(run.steps)}</span>
      <span class="n" data-name="calls">{grouped(run.calls)}</span>
      <span class="n" data-name="tokens">{run.own_usage?.estimated ? "~" : ""}{grouped(tokens)}</span>
      <span class="n" data-name="cost">{dollars(run.own_cost)}</span>
      <span class="n" data-name="time">{lasting(seconds)}</span>
      <span class="n" data-name="began">{moment(run.started)}</span>
    </div>
  );
}

function Search({ text, onSearch }: { text: string; onSearch(text: string): void }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => {
    if (typed === text) return;
    const timer = setTimeout(() => onSearch(typed), 300);
    return () => clearTimeout(timer);
  }, [typed]);
  return <Field label="Search"><input type="search" value={typed} placeholder="question or id" onInput={(event) => setTyped(event.currentTarget.value)} /></Field>;
}

/** The agents that there are. */
export function useAgents() {
  const asked = useGet<Agent[] | { agents: Agent[] }>("api/agents");
  const data = asked.data === null ? null : Array.isArray(asked.data) ? asked.data : asked.data.agents;
  return { ...asked, data };
}

function Ask({ agents }: { agents: Agent[] }) {
  const [text, setText] = useState("");
  const [agent, setAgent] = useState("");
  const doing = useDoing();
  const chosen = agent || agents[0]?.name || "";
  const ask = () =>
    doing.run(async () => {
      const run = await send<Run>("POST", "api/runs", { agent: chosen, input: text });
      go(address("runs", run.id));
    });
  return (
    <form class="ask" onSubmit={(event) => { event.preventDefault(); if (text.trim()) void ask(); }}>
      {agents.length > 1 && (
        <select aria-label="Agent" value={chosen} onChange={(event) => setAgent(event.currentTarget.value)}>
          {agents.map((one) => <option value={one.name}>{one.name}</option>)}
        </select>
      )}
      <input aria-label={`Ask ${chosen}`} placeholder={`Ask ${chosen || "…"}`} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit" class="main" disabled={doing.busy || !text.trim() || !chosen}>Ask</button>
      <Failure error={doing.error} />
    </form>
  );
}
