/** One run: its story as it happens, its waterfall, its steps from inside, and what can be done with it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, runPath, send } from "../api/client";
import type { RunInFull } from "../api/types";
import { useDoing, useGet } from "../api/use";
import { Dialog, Facts, Failure, Status, Told, useTitle } from "../parts/frame";
import { dollars, grouped, lasting, moment } from "../parts/figures";
import { Shown } from "../parts/text";
import { visible } from "../parts/visible";
import { Windowed } from "../parts/windowed";
import { address, go } from "../router";
import { because, type Head, type Item } from "./fold";
import { ForkDialog, LimitFields, limitsJson } from "./fork";
import { InsideView } from "./inside";
import { Approval } from "./approval";
import { Row } from "./story";
import { useRun, type Followed } from "./use";
import { WaterfallView } from "./waterfall";

interface Props {
  id: string;
  /** "story", "waterfall", or "steps" with `step`. */
  view: string;
  step: number | null;
}

/** The page of a run. */
export function RunPage({ id, view, step }: Props) {
  const followed = useRun(id);
  const { items, head } = followed;
  // What only the server knows is asked for again when something may have changed it, and never at every event.
  const told = useGet<RunInFull>(runPath(id), {}, { news: `${head.phase}${head.events ? 1 : 0}${waiting(items)}${followed.connection === "lost"}` });
  const [forking, setForking] = useState<number | null>(null);
  const [refused, setRefused] = useState<Error | null>(null);
  const decided = (error: Error | null) => {
    setRefused(error);
    told.again();
  };
  // What nobody has any more can be read as far as it was heard, and nothing can be done with it.
  const status = statusOf(told.data, head, followed);
  const run = status === "gone" ? null : told.data;
  useTitle(head.question.slice(0, 60) || id);
  return (
    <div class="run-page">
      <Heading id={id} head={head} run={run} status={status} followed={followed} onChanged={told.again} onFork={() => setForking(Math.max(0, head.steps - 1))} />
      <Failure error={followed.error ?? told.error ?? refused} />
      <nav class="tabs" aria-label="Views of this run">
        {(["story", "waterfall", "steps"] as const).map((name) => (
          <a data-page="1" key={name} aria-current={view === name ? "page" : undefined} href={name === "story" ? address("runs", id) : name === "steps" ? address("runs", id, "steps", step ?? 0) : address("runs", id, name)}>
            {{ story: "Story", waterfall: "Waterfall", steps: "Inside the steps" }[name]}
          </a>
        ))}
      </nav>
      {view === "waterfall" ? <WaterfallView run={id} live={head.phase === "running" && followed.connection !== "ended"} now={head.events} />
        : view === "steps" ? <div class="page-scroll"><InsideView run={id} number={step ?? 0} steps={head.steps} now={stepNow(items, step ?? 0, head)} onFork={setForking} /></div>
        : <StoryView id={id} followed={followed} run={run} onDecided={decided} />}
      <Dock id={id} run={run} head={head} status={status} view={view} onChanged={told.again} onDecided={decided} />
      {forking !== null && <ForkDialog run={id} at={forking} items={items} onClose={() => setForking(null)} />}
      <Told>{announced(head, items, run)}</Told>
    </div>
  );
}

function waiting(items: readonly Item[]): string {
  return items.flatMap((item) => (item.kind === "call" && item.call.status === "waiting" ? [item.key] : [])).join(" ");
}

/** A step is asked for again while it grows, and not when another does. */
function stepNow(items: readonly Item[], step: number, head: Head): number {
  return head.steps > step + 1 ? -1 : items.filter((item) => item.step === step).length + head.events;
}

function statusOf(run: RunInFull | null, head: Head, followed: Followed): string {
  if (followed.error instanceof Refused && followed.error.status === 404) return "gone";
  if (head.phase === "running" && run && ["left", "waiting", "damaged"].includes(run.status)) return run.status;
  if (head.phase === "paused") return "waiting";
  if (head.phase === "finished" && run && run.status !== "running") return run.status;
  return followed.error && !head.events ? "damaged" : "running";
}

function announced(head: Head, items: readonly Item[], run: RunInFull | null): string {
  if (head.stop && head.phase === "finished") return `The run has ended: ${because(head.stop)}.`;
  if (run?.pending.length) return `${run.pending.length} of its calls wait for you: ${run.pending.map((one) => one.tool).join(", ")}.`;
  const last = items[items.length - 1];
  return last?.kind === "call" ? `Step ${last.step}: ${last.call.name} ${last.call.status}.` : head.steps ? `Step ${head.steps - 1}.` : "";
}

interface HeadingProps {
  id: string;
  head: Head;
  run: RunInFull | null;
  status: string;
  followed: Followed;
  onChanged(): void;
  onFork(): void;
}

function Heading({ id, head, run, status, followed, onChanged, onFork }: HeadingProps) {
  const seconds = useTicking(head, status);
  const spent = under(status) ? (head.spent ?? run?.total ?? null) : (run?.total ?? head.spent);
  const usage = spent?.usage ?? run?.own_usage;
  return (
    <header class="run-head">
      <div class="title">
        <h1><Shown text={head.question.slice(0, 300) || id} prose /></h1>
        <Status status={status} />
        {followed.connection === "lost" && <span class="status lost" role="status" title={followed.why}>connection lost, trying again</span>}
      </div>
      {(head.events > 0 || status !== "gone") && <Facts facts={[
        ["agent", <Shown text={head.agent} />], ["model", <Shown text={head.model} />], ["steps", grouped(head.steps)], ["calls", grouped(Math.max(run?.calls ?? 0, head.calls))],
        ["tokens", usage ? `${usage.estimated ? "~" : ""}${grouped((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0))}` : grouped(head.tokens)],
        ["cost", spent || run ? dollars(spent ? spent.cost : run?.own_cost) : "…"], ["time", lasting(seconds)], ["began", moment(head.started)],
        ["for", run?.user ? <Shown text={run.user} /> : ""],
        ["fork of", run?.forked_from ? <a data-page="1" href={address("runs", run.forked_from)}>{short(run.forked_from)}</a> : ""],
        ["works for", parentOf(run) ? <a data-page="1" href={address("runs", parentOf(run)!)}>{short(parentOf(run)!)}</a> : ""],
        ["conversation", run?.conversation ? <a data-page="1" href={address("chat", "c", run.conversation)}><Shown text={run.conversation} /></a> : ""],
      ]} />}
      {status !== "gone" && <Acts id={id} status={status} onChanged={onChanged} onFork={onFork} />}
    </header>
  );
}

function under(status: string): boolean {
  return status === "running";
}

function parentOf(run: RunInFull | null): string | null {
  const parent = run?.parent;
  return typeof parent === "string" ? parent : (parent?.run_id ?? null);
}

export function short(id: string): string {
  return id.length > 12 ? `${id.slice(0, 8)}…` : id;
}

function useTicking(head: Head, status: string): number | null {
  const [, tick] = useState(0);
  useEffect(() => {
    if (status !== "running") return;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [status]);
  if (!head.started) return null;
  return Math.max(0, (status === "running" ? Date.now() / 1000 : head.last) - head.started);
}

function Acts({ id, status, onChanged, onFork }: { id: string; status: string; onChanged(): void; onFork(): void }) {
  const doing = useDoing();
  const [opened, setOpened] = useState<"resume" | "replay" | "delete" | null>(null);
  const act = (what: string) => () => doing.run(async () => { await send("POST", runPath(id, what)); onChanged(); });
  const running = under(status);
  const ended = ENDED.has(status);
  const exported = (format: string) => runPath(id, "export") + `?format=${format}`;
  return (
    <div class="acts" role="group" aria-label="What can be done">
      {running && <button type="button" onClick={act("pause")} disabled={doing.busy}>Pause</button>}
      {!ended && <button type="button" class="bad" onClick={act("cancel")} disabled={doing.busy}>Cancel</button>}
      {!running && <button type="button" onClick={() => setOpened("resume")}>Go on …</button>}
      <button type="button" onClick={onFork}>Fork …</button>
      <button type="button" onClick={() => setOpened("replay")}>Replay</button>
      <a class="button" data-page="1" href={`${address("compare")}?a=${encodeURIComponent(id)}`}>Compare …</a>
      <details class="menu">
        <summary class="button">Export</summary>
        <div>
          <a href={exported("html")} download>A page that opens offline</a>
          <a href={exported("markdown")} download>Markdown</a>
          <a href={exported("jsonl")} download>JSON Lines</a>
        </div>
      </details>
      {!running && <button type="button" onClick={() => setOpened("delete")}>Delete …</button>}
      <Failure error={doing.error} />
      {opened === "resume" && <ResumeDialog id={id} onClose={() => setOpened(null)} onChanged={onChanged} />}
      {opened === "replay" && <ReplayDialog id={id} onClose={() => setOpened(null)} />}
      {opened === "delete" && <DeleteDialog id={id} onClose={() => setOpened(null)} />}
    </div>
  );
}

function DeleteDialog({ id, onClose }: { id: string; onClose(): void }) {
  const doing = useDoing();
  return (
    <Dialog title="Delete this run" onClose={onClose}>
      <p>It goes from the journal for good, with the runs that work for it.</p>
      <Failure error={doing.error} />
      <div class="buttons">
        <button type="button" class="bad" disabled={doing.busy} onClick={() => doing.run(async () => { await send("DELETE", runPath(id)); onClose(); go(address("runs")); })}>Delete it</button>
        <button type="button" onClick={onClose}>Keep it</button>
      </div>
    </Dialog>
  );
}

function ResumeDialog({ id, onClose, onChanged }: { id: string; onClose(): void; onChanged(): void }) {
  const [message, setMessage] = useState("");
  const [limits, setLimits] = useState<Record<string, string>>({});
  const doing = useDoing();
  const resume = () =>
    doing.run(async () => {
      const bounds = limitsJson(limits);
      const fields = [...(message.trim() ? [`"message":${JSON.stringify(message)}`] : []), ...(bounds ? [`"limits":${bounds}`] : [])];
      await send("POST", runPath(id, "resume"), `{${fields.join(",")}}`);
      onChanged();
      onClose();
    });
  return (
    <Dialog title="Go on with this run" onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); void resume(); }}>
        <label class="field"><span>Say something (may stay empty)</span><textarea rows={3} value={message} onInput={(event) => setMessage(event.currentTarget.value)} /></label>
        <LimitFields limits={limits} onChange={setLimits} />
        <p class="faint">What stays empty stays as it is. A run that ended at a limit needs a higher one.</p>
        <Failure error={doing.error} />
        <div class="buttons"><button type="submit" class="main" disabled={doing.busy}>Go on</button><button type="button" onClick={onClose}>Leave it</button></div>
      </form>
    </Dialog>
  );
}

interface Replayed {
  same?: boolean;
  differences?: unknown[];
  difference?: unknown;
  [field: string]: unknown;
}

function ReplayDialog({ id, onClose }: { id: string; onClose(): void }) {
  const [found, setFound] = useState<Replayed | null>(null);
  const doing = useDoing();
  useEffect(() => void doing.run(async () => setFound(await send<Replayed>("POST", runPath(id, "replay")))), [id]);
  const told = (found?.differences as string[] | undefined) ?? [];
  return (
    <Dialog title="Replay" onClose={onClose}>
      <p class="faint">The run is carried out again from its journal, with no model and no tool.</p>
      {doing.busy && <p role="status">Replaying …</p>}
      <Failure error={doing.error} />
      {found && (told.length === 0 ? <p role="status"><strong>It comes out the same, event by event.</strong></p> : (
        <ul>{told.map((one) => <li><pre><Shown text={typeof one === "string" ? one : JSON.stringify(one, null, 2)} /></pre></li>)}</ul>
      ))}
    </Dialog>
  );
}

const ENDED = new Set(["finished", "stopped", "failed", "cancelled", "damaged"]);

function StoryView({ id, followed, run, onDecided }: { id: string; followed: Followed; run: RunInFull | null; onDecided(refused: Error | null): void }) {
  const { items, head } = followed;
  const [following, setFollowing] = useState(true);
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const shown = useMemo(() => (wanted ? items.filter((item) => textIn(item).toLowerCase().includes(wanted)) : items), [items, wanted]);
  const over = head.phase === "finished";
  // A run that was over when it was opened is read from its beginning.
  const opened = useRef<boolean | null>(null);
  if (opened.current === null && run) opened.current = ENDED.has(run.status);
  const follows = following && !wanted && opened.current === false;
  const showing = { run: id, pending: run?.pending ?? [], below: run?.sub_runs ?? [], onDecided };
  return (
    <div class="story">
      <div class="story-bar">
        <input type="search" placeholder="Find in this run" aria-label="Find in this run" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="faint" role="status">{wanted ? `${grouped(shown.length)} of ${grouped(items.length)}` : `${grouped(head.events)} events`}</span>
        {!over && <label class="switch"><input type="checkbox" checked={following} onChange={(event) => setFollowing(event.currentTarget.checked)} /> follow</label>}
      </div>
      <Windowed items={shown} keyOf={(item) => item.key} likely={72} label="Story of the run" following={follows} onFollowing={setFollowing} render={(item) => <Row item={item} showing={showing} />} />
    </div>
  );
}

function textIn(item: Item): string {
  if (item.kind === "call") return `${item.call.name} ${item.call.arguments} ${typeof item.call.result === "string" ? item.call.result : JSON.stringify(item.call.result)}`;
  if (item.kind === "step") return `step ${item.number} ${item.model}`;
  if (item.kind === "end") return because(item.stop);
  return item.text;
}

/** What stands at the foot of the page: calls that wait, and a line to say something to the run. */
function Dock({ id, run, head, status, view, onChanged, onDecided }: { id: string; run: RunInFull | null; head: Head; status: string; view: string; onChanged(): void; onDecided(refused: Error | null): void }) {
  const [text, setText] = useState("");
  const doing = useDoing();
  const pending = run?.pending ?? [];
  const away = pending.filter(() => view !== "story");
  const say = () =>
    doing.run(async () => {
      await send("POST", runPath(id, "messages"), { text });
      setText("");
      onChanged();
    });
  return (
    <footer class="dock">
      {pending.length > 0 && view === "story" && (
        <a class="waits" href={`#call-${pending[0]!.call}`} onClick={(event) => { event.preventDefault(); document.querySelector(".approval")?.scrollIntoView({ block: "center" }); document.querySelector<HTMLElement>(".approval button")?.focus(); }}>
          {grouped(pending.length)} {pending.length === 1 ? "call waits" : "calls wait"} for you: {pending.map((one) => visible(one.tool)).join(", ")}
        </a>
      )}
      {away.map((one) => <Approval run={id} pending={one} key={one.fingerprint} onDecided={onDecided} />)}
      {status === "running" && head.events > 0 && (
        <form class="say" onSubmit={(event) => { event.preventDefault(); if (text.trim()) void say(); }}>
          <input aria-label="Say something to this run" placeholder="Say something to this run; the model is shown it at its next step" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <button type="submit" disabled={doing.busy || !text.trim()}>Say</button>
        </form>
      )}
      <Failure error={doing.error} />
    </footer>
  );
}
