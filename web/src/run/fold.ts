/**
 * The story of a run as a fold of its events: an item for everything that a person reads one after the other. An item is
 * never changed but replaced, so that what is shown of it is drawn anew only when something happened to it.
 */

import type { Amount, Content, Decision, JournalEvent, Limits, Message, Part, Stop, Usage } from "../api/types";

export interface CallState {
  id: string;
  step: number;
  name: string;
  arguments: string;
  /** How it stands: "asked" for and not yet begun, "running", "waiting" for a person, and how it came out. */
  status: "asked" | "running" | "waiting" | "done" | "failed" | "refused" | "interrupted";
  started: number | null;
  ended: number | null;
  result: Content | null;
  app: unknown;
  why: string;
  decided: string;
  edited: string | null;
  raised: string;
  /** The run that works on it, if one does. */
  run: string;
  progress: string;
}

interface Common {
  key: string;
  at: number;
  step: number | null;
}

export type Item = Common &
  (
    | { kind: "question"; text: string; images: Part[]; agent: string; model: string; instructions: string; earlier: number; by: string }
    | { kind: "step"; number: number; decision: Decision; landing: Stop | null; note: string; model: string; tools: string[]; withheld: string[]; usage: Usage | null; cost: Amount | undefined; ended: number | null; finish: string }
    | { kind: "thinking"; text: string; live: boolean }
    | { kind: "text"; text: string; live: boolean }
    | { kind: "call"; call: CallState }
    | { kind: "note"; tone: "plain" | "warn" | "bad"; text: string; detail: string; run: string }
    | { kind: "said"; text: string; by: string }
    | { kind: "end"; stop: Stop; output: unknown }
  );

export interface Head {
  agent: string;
  model: string;
  limits: Limits;
  tools: string[];
  started: number;
  last: number;
  steps: number;
  phase: "running" | "paused" | "finished";
  stop: Stop | null;
  events: number;
  calls: number;
  tokens: number;
  question: string;
  conversation: string;
  user: string;
  /** What it has taken so far, with the runs below it; null as long as nobody has told. */
  spent: { usage: Usage; cost: Amount } | null;
  /** What was said before the run, without its instructions. */
  earlier: Message[];
}

/** Text of a message's content; of images and files what they are. */
export function textOf(content: Content | null | undefined): string {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? (part.text ?? "") : `[${part.type}]`)).join("\n");
}

export class Story {
  items: Item[] = [];
  head: Head = {
    agent: "", model: "", limits: {}, tools: [], started: 0, last: 0, steps: 0, phase: "running", stop: null, events: 0,
    calls: 0, tokens: 0, question: "", conversation: "", user: "", spent: null, earlier: [],
  };
  private places = new Map<string, number>();
  private step = -1;

  /** The item that a key names. */
  at(key: string): Item | undefined {
    const place = this.places.get(key);
    return place === undefined ? undefined : this.items[place];
  }

  /** Takes in the next event of the journal. */
  take(event: JournalEvent): void {
    const head = { ...this.head, last: event.at, events: event.number };
    this.head = head;
    const step = typeof event["step"] === "number" ? event["step"] : null;
    switch (event.type) {
      case "run_started":
        return this.begun(event, head);
      case "step_prepared":
        return this.prepared(event, head);
      case "model_replied":
        return this.replied(event, head);
      case "model_failed":
        return this.failed(event);
      case "tool_started":
        return this.called(step, event, {
          status: "running", started: event.at, progress: "",
          ...(event["name"] ? { name: text(event["name"]), arguments: text(event["arguments"]) } : {}),
        });
      case "tool_finished":
        return this.finished(step, event);
      case "tool_reacted":
        return this.reacted(step, event);
      case "approval_requested":
        return this.called(step, event, {
          status: "waiting",
          why: event["why"] === "interrupted" ? "It was cut off, and nobody knows whether it was done." : text(event["reason"]) || "A person has to decide.",
        });
      case "approval_decided":
        return this.decided(step, event);
      case "result_awaited":
        return this.called(step, event, {
          status: "waiting", run: text(event["run_id"]),
          why: text(event["question"]) || (event["run_id"] ? "The run that works on it waits." : "Its result comes from outside."),
        });
      case "message_added":
        return this.add({ kind: "said", text: textOf((event["message"] as Message).content), by: text(event["by"]) }, event);
      case "context_edited":
        if (event["reserve"]) return this.note(event, "plain", `${text(event["policy"])} asks ${text(event["model"])} for a summary.`);
        return this.note(
          event, "plain", `${text(event["policy"])} made room: about ${number(event["before"])} tokens became ${number(event["after"])}.`,
          text(event["detail"]),
        );
      case "nudge_given":
        return this.note(event, "warn", "treadle told the model:", text(event["text"]));
      case "run_paused":
        head.phase = "paused";
        head.stop = event["stop"] as Stop;
        return this.note(event, "warn", `Paused: ${because(event["stop"] as Stop)}.`);
      case "run_resumed":
        head.phase = "running";
        head.stop = null;
        if (event["limits"]) head.limits = event["limits"] as Limits;
        this.interrupt();
        return this.note(event, "plain", `Taken up again${event["by"] ? ` by ${text(event["by"])}` : ""}.`);
      case "run_forked":
        head.phase = "running";
        head.stop = null;
        if (event["limits"]) head.limits = event["limits"] as Limits;
        if (event["model"]) head.model = text(event["model"]);
        return this.add({ kind: "note", tone: "plain", text: "From here on it is a fork; what stands above was done and paid by the run that it came from.", detail: "", run: "" }, event);
      case "run_finished":
        head.phase = "finished";
        head.stop = event["stop"] as Stop;
        this.interrupt();
        this.undecided();
        return this.add({ kind: "end", stop: event["stop"] as Stop, output: event["output"] }, event);
      default:
        return this.note(event, "plain", `An event that this page does not know: ${event.type}.`);
    }
  }

  /** Takes in something that is shown while it happens. */
  live(kind: string, data: Record<string, unknown>): void {
    if (kind === "delta" && (data["kind"] === "text" || data["kind"] === "thinking")) {
      const which = data["kind"];
      const key = `live-${which}-${this.step}`;
      const old = this.at(key);
      const before = old && (old.kind === "text" || old.kind === "thinking") ? old.text : "";
      this.put({ key, at: this.head.last, step: this.step, kind: which, text: before + text(data["text"]), live: true });
    } else if (kind === "progress") {
      const update = data["update"];
      const key = this.callKey(this.step, text(data["call"]));
      this.change(key, { progress: typeof update === "string" ? update : JSON.stringify(update) });
    } else if (kind === "below") this.below(data);
    else if (kind === "spent") this.head = { ...this.head, spent: { usage: data["usage"] as Usage, cost: (data["cost"] ?? null) as Amount } };
  }

  private below(data: Record<string, unknown>): void {
    const inner = (data["data"] ?? {}) as Record<string, unknown>;
    const types: Record<string, string> = {
      step_prepared: "thinks", tool_started: `calls ${text(inner["name"]) || "a tool"}`, run_paused: "waits", run_finished: "has ended",
    };
    const said = data["event"] === "event" ? types[text(inner["type"])] : data["event"] === "progress" ? text(inner["update"]) : undefined;
    const progress = said ? { progress: `${text(data["agent"])} ${said}` } : {};
    this.change(this.callKey(this.step, text(data["call"])), { run: text(data["run"]), ...progress });
  }

  private begun(event: JournalEvent, head: Head): void {
    const messages = (event["messages"] ?? []) as Message[];
    const users = messages.filter((message) => message.role === "user");
    const asked = users[users.length - 1];
    const question = textOf(asked?.content);
    Object.assign(head, {
      agent: text(event["agent"]), model: text(event["model"]), limits: (event["limits"] ?? {}) as Limits,
      tools: (event["tools"] ?? []) as string[], started: event.at, question,
      conversation: text(event["conversation"]), user: text(event["user"]),
      earlier: messages.filter((message) => message.role !== "system" && message !== asked),
    });
    const system = messages.find((message) => message.role === "system");
    const images = Array.isArray(asked?.content) ? asked.content.filter((part) => part.type !== "text") : [];
    const earlier = Math.max(0, messages.length - (system ? 1 : 0) - (asked ? 1 : 0));
    this.add(
      { kind: "question", text: question, images, agent: head.agent, model: head.model, instructions: textOf(system?.content), earlier, by: head.user },
      event,
    );
  }

  private prepared(event: JournalEvent, head: Head): void {
    this.settle();
    this.step = event["step"] as number;
    head.steps = this.step + 1;
    this.put({
      key: `step-${this.step}`, at: event.at, step: this.step, kind: "step", number: this.step,
      decision: event["decision"] as Decision, landing: (event["landing"] ?? null) as Stop | null, note: text(event["note"]),
      model: text(event["model"]) || head.model, tools: (event["tools"] ?? head.tools) as string[],
      withheld: (event["withheld"] ?? []) as string[], usage: null, cost: undefined, ended: null, finish: "",
    });
  }

  private replied(event: JournalEvent, head: Head): void {
    const step = event["step"] as number;
    this.forget(`live-text-${step}`);
    this.forget(`live-thinking-${step}`);
    const usage = (event["usage"] ?? {}) as Usage;
    head.tokens += (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
    const heading = this.at(`step-${step}`);
    if (heading?.kind === "step")
      this.put({ ...heading, usage, cost: (event["cost"] ?? null) as Amount, ended: event.at, finish: text(event["finish"]), model: text(event["model"]) || heading.model });
    const parts = ((event["message"] as { content?: Part[] })?.content ?? []) as Part[];
    parts.forEach((part, place) => {
      const common = { key: `part-${event.number}-${place}`, at: event.at, step };
      if (part.type === "text" && part.text?.trim()) this.put({ ...common, kind: "text", text: part.text, live: false });
      else if (part.type === "thinking" && part.text?.trim()) this.put({ ...common, kind: "thinking", text: part.text, live: false });
      else if (part.type === "tool_call") this.wanted(part, step, event.at);
      else if (part.type === "opaque") this.put({ ...common, kind: "note", tone: "plain", text: `A part that only ${part.provider} understands.`, detail: "", run: "" });
    });
  }

  private wanted(part: Part, step: number, at: number): void {
    const key = this.callKey(step, part.id ?? "");
    this.head.calls++;
    const early = this.at(key);
    if (early?.kind === "call") {
      // It began while the reply was arriving: its place is where the reply has it.
      this.forget(key);
      this.put({ ...early, call: { ...early.call, name: part.name ?? "", arguments: part.arguments ?? "" } });
    } else this.put({ key, at, step, kind: "call", call: newCall(step, part.id ?? "", part.name ?? "", part.arguments ?? "") });
  }

  private failed(event: JournalEvent): void {
    this.forget(`live-text-${this.step}`);
    this.forget(`live-thinking-${this.step}`);
    const error = event["error"] as { kind: string; message: string };
    const retry = event["retry_in"];
    const again = typeof retry === "number" ? ` It is asked again in ${retry.toFixed(1)} s.` : "";
    this.note(event, "bad", `Attempt ${number(event["attempt"]) || 1} at the model failed (${error.kind}).${again}`, error.message);
  }

  private finished(step: number | null, event: JournalEvent): void {
    const spent = event["spent"];
    const old = this.at(this.callKey(step, text(event["call_id"])));
    const refused = old?.kind === "call" && old.call.started === null && Boolean(event["is_error"]);
    this.called(step, event, {
      status: event["is_error"] ? (refused ? "refused" : "failed") : "done",
      ended: event.at, result: event["content"] as Content, app: event["app"] ?? null, raised: text(event["raised"]), progress: "",
      ...(spent && old?.kind === "call" && !old.call.run ? { run: old.call.run } : {}),
    });
  }

  private reacted(step: number | null, event: JournalEvent): void {
    if (event["action"] === "replace")
      this.called(step, event, { status: event["is_error"] ? "failed" : "done", result: event["content"] as Content, app: event["app"] ?? null, why: "The application replaced its result." });
    else if (event["action"] === "call") {
      const call = event["call"] as Part;
      this.called(step, event, { status: "asked", started: null, ended: null, why: `The application had it made again as ${call.name}(${call.arguments ?? ""}).` });
    } else if (event["action"] === "change") this.called(step, event, { edited: text(event["arguments"]), decided: "The application changed its arguments." });
    else if (event["reason"]) this.note(event, "warn", "The result before it is kept:", text(event["reason"]));
  }

  private decided(step: number | null, event: JournalEvent): void {
    const by = event["by"] ? ` by ${text(event["by"])}` : "";
    const edited = typeof event["arguments"] === "string" ? event["arguments"] : null;
    const old = this.at(this.callKey(step, text(event["call_id"])));
    const below = old?.kind === "call" && old.call.run !== "";
    const word = !event["approved"] ? "denied" : below ? "decided in its own run" : edited === null ? "approved" : "approved with other arguments";
    this.called(step, event, {
      // A call that had begun may have been done: that somebody has it not made again is no refusal of that.
      status: event["approved"] ? "asked" : old?.kind === "call" && old.call.started !== null ? "interrupted" : "refused",
      decided: `${word}${by}${event["reason"] ? `: ${text(event["reason"])}` : ""}`, why: "", ...(edited === null ? {} : { edited }),
    });
  }

  private called(step: number | null, event: JournalEvent, change: Partial<CallState>): void {
    const id = text(event["call_id"]);
    const key = this.callKey(step, id);
    if (!this.places.has(key)) this.put({ key, at: event.at, step, kind: "call", call: newCall(step ?? 0, id, "", "") });
    this.change(key, change);
  }

  private change(key: string, change: Partial<CallState>): void {
    const old = this.at(key);
    if (old?.kind === "call") this.put({ ...old, call: { ...old.call, ...change } });
  }

  /** What was shown live and did not come to anything is no longer shown; nor what a new connection shows again. */
  settle(): void {
    this.forget(`live-text-${this.step}`);
    this.forget(`live-thinking-${this.step}`);
  }

  /** Calls that were under way when a process died. */
  private interrupt(): void {
    this.settle();
    for (const item of this.items)
      if (item.kind === "call" && item.call.status === "running") this.change(item.key, { status: "interrupted" });
  }

  /** Calls that still waited when the run ended: nobody can decide on them any more. */
  private undecided(): void {
    for (const item of this.items) {
      if (item.kind !== "call" || item.call.status !== "waiting") continue;
      const { run, started } = item.call;
      if (!run && started === null) this.change(item.key, { status: "refused", why: "The run ended before anybody decided." });
      else this.change(item.key, { status: "interrupted", why: run ? "The run ended while the run that works on it waited." : "The run ended, and nobody had said what came of it." });
    }
  }

  private note(event: JournalEvent, tone: "plain" | "warn" | "bad", said: string, detail = ""): void {
    this.add({ kind: "note", tone, text: said, detail, run: "" }, event);
  }

  private add(what: DistributiveOmit<Item, keyof Common>, event: JournalEvent): void {
    const step = this.step < 0 ? null : this.step;
    this.put({ key: `event-${event.number}`, at: event.at, step, ...what } as Item);
  }

  private put(item: Item): void {
    const place = this.places.get(item.key);
    if (place === undefined) {
      this.places.set(item.key, this.items.length);
      this.items.push(item);
    } else this.items[place] = item;
  }

  private forget(key: string): void {
    const place = this.places.get(key);
    if (place === undefined) return;
    this.items.splice(place, 1);
    this.places.delete(key);
    for (let at = place; at < this.items.length; at++) this.places.set(this.items[at]!.key, at);
  }

  private callKey(step: number | null, id: string): string {
    return `call-${step}-${id}`;
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

function newCall(step: number, id: string, name: string, args: string): CallState {
  return {
    id, step, name, arguments: args, status: "asked", started: null, ended: null, result: null, app: null, why: "", decided: "",
    edited: null, raised: "", run: "", progress: "",
  };
}

/** Why a run stopped, in a few words. */
export function because(stop: Stop | null): string {
  if (!stop) return "";
  return stop.detail ? `${stop.reason}, ${stop.detail}` : stop.reason;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
}

function number(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}
