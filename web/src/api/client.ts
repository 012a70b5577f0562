/** Asks the server; what it refuses is said in its own words. */

import { read } from "./json";

/** The server refused, or could not be reached (`status` 0). */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly advice: string,
    readonly kind: string,
  ) {
    super(message);
  }
}

/** Says "unknown" when the server does not know any more who asks. */
export const unknown = new EventTarget();

/** Sends a request; an answer that is no success is thrown as `Refused`. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(new URL(path, document.baseURI), { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    // What is only looked at is asked for again; what is to be done is not, and may have reached the server all the same.
    throw init.method
      ? new Refused(0, "The server could not be reached, or did not answer.", "Whether this was done is not known: look once it is back, and do it again if it was not.", "unreachable")
      : new Refused(0, "The server cannot be reached.", "It may have stopped; this page tries again.", "unreachable");
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && !path.startsWith("api/session")) unknown.dispatchEvent(new Event("unknown"));
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<Refused> {
  const text = await answer.text();
  try {
    const said = (read(text) as { error: { kind?: string; message?: string; advice?: string } }).error;
    return new Refused(answer.status, said.message ?? "", said.advice ?? "", said.kind ?? "");
  } catch {
    return new Refused(answer.status, `The server answered with ${answer.status}.`, "", "");
  }
}

/** Gets what is at an address of the server's. */
export async function get<T>(path: string, query: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
  const asked = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(asked.map(([name, value]) => [name, String(value)])).toString();
  const answer = await request(search ? `${path}?${search}` : path, signal ? { signal } : {});
  return read(await answer.text()) as T;
}

/** Sends `body`, a value or JSON text, to an address of the server's. */
export async function send<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const answer = await request(path, {
    method,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    // A body that is a text is JSON already, with digits that would not survive being read.
    body: typeof body === "string" ? body : JSON.stringify(body ?? {}),
  });
  const text = await answer.text();
  return (text === "" ? null : read(text)) as T;
}

/** The address of a run at the server, and of what belongs to it. */
export function runPath(id: string, ...rest: (string | number)[]): string {
  return ["api/runs", id, ...rest].map((part, at) => (at ? encodeURIComponent(String(part)) : part)).join("/");
}
