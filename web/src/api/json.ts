/**
 * JSON that loses no digit. A number that a JavaScript number cannot hold (an amount beyond 2^53, a long decimal) is read
 * as an `Exact`, which keeps its digits; text of JSON is laid out for people without being read at all.
 */

/** A number as its digits stood in the JSON, where a JavaScript number would change its value. */
export class Exact {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

const SUSPECT = /\d[\d.]{14,}|\d[eE][+-]?\d/;
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;
// Nobody who writes a text that comes through here can know it, so no text can pass for a number.
const MARK = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("") + ":";

/** Reads JSON. Throws a SyntaxError where it is none. */
export function read(text: string): unknown {
  if (!SUSPECT.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKENS, (token) => (token[0] === '"' || holds(token) ? token : `"${MARK}${token}"`));
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? new Exact(value.slice(MARK.length)) : value,
  );
}

/** Whether a JavaScript number has the very value that a token of JSON has. */
function holds(token: string): boolean {
  const value = Number(token);
  return Number.isFinite(value) && digits(token) === digits(String(value));
}

/** The value of a number as its significant digits and its exponent, one spelling for each value. */
function digits(token: string): string {
  const [mantissa = "", exponent = "0"] = token.replace(/^-/, "").toLowerCase().split("e");
  const [whole = "", part = ""] = mantissa.split(".");
  const all = (whole + part).replace(/^0+/, "");
  const significant = all.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${token.startsWith("-") ? "-" : ""}${significant}e${Number(exponent) - part.length + all.length - significant.length}`;
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON text laid out on lines, every token as it stands: digits, escapes, names that come twice and all. */
export function laidOut(text: string): string {
  let out = "";
  let depth = 0;
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs) ?? [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] ?? "";
    if (token === "{" || token === "[") {
      const next = tokens[at + 1];
      if (next === "}" || next === "]") {
        out += token + next;
        at++;
      } else out += token + line(++depth);
    } else if (token === "}" || token === "]") out += line(--depth) + token;
    else if (token === ",") out += token + line(depth);
    else out += token === ":" ? ": " : token;
  }
  return out;
}

function line(depth: number): string {
  return `\n${"  ".repeat(Math.max(0, depth))}`;
}

/** A value that was read, as JSON text again, laid out; the digits of an `Exact` as they stood. */
export function written(value: unknown): string {
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return laidOut(`[${value.map(written).join(",")}]`);
  if (value !== null && typeof value === "object") {
    const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}:${written(each)}`);
    return laidOut(`{${fields.join(",")}}`);
  }
  return JSON.stringify(value) ?? "null";
}
