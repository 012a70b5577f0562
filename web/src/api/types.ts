/** What the server says, as the page reads it. */

import type { Exact } from "./json";

export type Amount = number | string | Exact | null;

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  estimated?: boolean;
}

export interface Stop {
  kind?: string;
  reason: string;
  detail?: string;
  advice?: string;
}

export interface Limits {
  steps?: number | null;
  tool_calls?: number | null;
  seconds?: number | null;
  usd?: Amount;
  tokens?: number | null;
  consecutive_errors?: number | null;
}

export interface Run {
  id: string;
  agent: string;
  model: string;
  status: string;
  question: string;
  started: number;
  ended: number | null;
  seconds: number | null;
  steps: number;
  calls: number;
  own_usage: Usage | null;
  own_cost: Amount;
  parent: { run_id: string; step: number; call_id: string } | string | null;
  forked_from?: string | null;
  user?: string;
  updated?: number;
  events?: number;
  driven?: boolean;
  conversation: string | null;
  stop: Stop | null;
}

export type Verdict = "approve" | "deny" | "edit" | "result" | "again";

export interface Pending {
  call: string;
  tool: string;
  arguments: unknown;
  arguments_json?: string;
  effect?: string | null;
  fingerprint: string;
  why: string;
  question?: string;
  run?: string;
  found?: string;
  allowed: Verdict[];
}

export interface RunInFull extends Run {
  text: string;
  output: unknown;
  messages: Message[];
  pending: Pending[];
  limits: Limits;
  total?: { usage: Usage; cost: Amount; elapsed: number };
  sub_runs: Run[];
}

export interface Part {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  arguments?: string;
  data?: string | null;
  url?: string | null;
  media_type?: string;
  provider?: string;
  value?: unknown;
}

export type Content = string | Part[];

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: Content;
  call_id?: string;
  name?: string;
  is_error?: boolean;
  left_out?: number;
  summary?: boolean;
}

export interface Check {
  name: string;
  value: Amount;
  bound?: Amount;
  met?: boolean;
}

export interface Decision {
  verdict: "go" | "land" | "stop";
  why?: string;
  steps?: number;
  tool_calls?: number;
  seconds?: number;
  usd?: Amount;
  tokens?: number;
  errors?: number;
  conditions?: Check[];
}

/** An event of the journal, with its number from 1; each kind has fields of its own beside these. */
export interface JournalEvent {
  number: number;
  type: string;
  at: number;
  [field: string]: unknown;
}

export interface ToolSpec {
  name: string;
  description: string;
  effect?: string | null;
  schema?: unknown;
  asks?: unknown;
}

export interface Agent {
  name: string;
  description: string;
  model: string;
  instructions: string;
  tools: ToolSpec[];
  skills: string[];
  limits: Limits;
}

export interface Bar {
  kind: string;
  depth: number;
  name: string;
  start: number;
  seconds: number | null;
  usage: Usage | null;
  cost: Amount;
  run_id: string;
  failed: boolean;
  shared: boolean;
}

export interface Waterfall {
  run_id: string;
  seconds: number;
  waited: number;
  bars: Bar[];
}
