/** A run's events, those that are stored and then those that happen, however often the connection is lost. */

import { Refused, request } from "./client";
import { read } from "./json";
import type { JournalEvent } from "./types";

export type Connection = "joining" | "live" | "lost" | "ended";

export interface Hearing {
  /** An event of the journal; each comes once, in its order. */
  event(event: JournalEvent): void;
  /** Something that is shown while it happens and is not in the journal. */
  live(kind: string, data: Record<string, unknown>): void;
  connection(state: Connection, why: string): void;
}

const FIRST_WAIT = 400;
const LONGEST_WAIT = 5000;

/** Follows a run after event number `last` until it ends or `signal` says so. What the server refuses is thrown. */
export async function follow(run: string, last: number, hearing: Hearing, signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT;
  hearing.connection("joining", "");
  for (;;) {
    let why = "the connection was closed";
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (last) headers["Last-Event-ID"] = String(last);
      const answer = await request(`api/runs/${encodeURIComponent(run)}/stream?deltas=1`, { headers, signal });
      hearing.connection("live", "");
      wait = FIRST_WAIT;
      for await (const sent of messages(answer, signal)) {
        if (sent.type === "end") return hearing.connection("ended", "");
        const data = read(sent.data) as Record<string, unknown>;
        if (sent.type === "error" && sent.id === "") throw new Error(String(data["message"] ?? "the server has lost the run"));
        if (sent.id === "") hearing.live(sent.type, data);
        else if (Number(sent.id) === last + 1) {
          last = Number(sent.id);
          hearing.event({ ...data, number: last, type: sent.type } as JournalEvent);
        } else if (Number(sent.id) > last) throw new Error(`event ${sent.id} came after event ${last}`);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
      why = error instanceof Error ? error.message : String(error);
    }
    if (signal.aborted) return;
    hearing.connection("lost", why);
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(LONGEST_WAIT, wait * 2);
  }
}

interface Sent {
  id: string;
  type: string;
  data: string;
}

/** The messages of a stream of server-sent events. */
async function* messages(answer: Response, signal: AbortSignal): AsyncGenerator<Sent> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  if (!reader) return;
  let rest = "";
  try {
    while (!signal.aborted) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const sent = message(block);
        if (sent) yield sent;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function message(block: string): Sent | null {
  const sent: Sent = { id: "", type: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "data") data.push(value);
    else if (name === "event") sent.type = value;
    else if (name === "id") sent.id = value;
  }
  sent.data = data.join("\n");
  return data.length || sent.type === "end" ? sent : null;
}
