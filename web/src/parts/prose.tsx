/** What a model wrote, with its headings, lists, tables and emphasis; made of elements, so that no markup of its own counts. */

import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { Inert, Shown, Verbatim } from "./text";

const MOST = 100_000;
/** Characters that are read as one: some texts take time that grows with the square of their length. */
const TOGETHER = 4_000;
const MOST_TOGETHER = 12_000;
const DEEPEST = 12;

/** Markdown as elements; a very long text as it stands. */
export function Prose({ text }: { text: string }) {
  const tokens = useMemo(() => lexed(text), [text]);
  if (tokens === null) return <Verbatim text={text} label="text" />;
  return <div class="prose">{blocks(tokens, 0)}</div>;
}

function lexed(text: string): Token[] | null {
  if (text.length > MOST) return null;
  const parts = inParts(text);
  if (parts.some((part) => part.length > MOST_TOGETHER)) return null;
  try {
    return parts.flatMap((part) => new Lexer({ gfm: true, breaks: true }).lex(part));
  } catch {
    return null;
  }
}

/** A text in parts that can be read alone: cut at blank lines, and neither in a block of code nor before an indented line. */
function inParts(text: string): string[] {
  if (text.length <= TOGETHER) return [text];
  const parts: string[] = [];
  let [part, fenced] = ["", false];
  for (const block of text.split(/(?<=\n\n)(?=[^\s])/)) {
    if (part.length + block.length > TOGETHER && part && !fenced) {
      parts.push(part);
      part = "";
    }
    part += block;
    if ((block.match(/^ {0,3}(```|~~~)/gm)?.length ?? 0) % 2) fenced = !fenced;
  }
  return [...parts, part];
}

function blocks(tokens: Token[] | undefined, depth: number): ComponentChildren {
  if (depth > DEEPEST) return <Shown text={(tokens ?? []).map((token) => token.raw).join("")} prose />;
  return (tokens ?? []).map((token) => block(token, depth + 1));
}

function block(token: Token, depth: number): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "hr":
      return <hr />;
    case "heading": {
      // Headings of a text stay below those of the page.
      const Tag = (["h3", "h3", "h4", "h5"] as const)[Math.min(3, (token as Tokens.Heading).depth)] ?? "h6";
      return <Tag>{inline(token.tokens, depth)}</Tag>;
    }
    case "paragraph":
      return <p>{inline(token.tokens, depth)}</p>;
    case "code":
      return <Verbatim text={(token as Tokens.Code).text} label="code" />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens, depth)}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item) => <li>{blocks(item.tokens, depth)}</li>);
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <Grid table={token as Tokens.Table} depth={depth} />;
    case "text":
      return token.tokens ? <span>{inline(token.tokens, depth)}</span> : <Shown text={(token as Tokens.Text).text} prose />;
    default:
      return <p><Shown text={token.raw} prose /></p>;
  }
}

function Grid({ table, depth }: { table: Tokens.Table; depth: number }) {
  const kind = (at: number) => (table.align[at] === "right" ? "n" : undefined);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead><tr>{table.header.map((cell, at) => <th scope="col" class={kind(at)}>{inline(cell.tokens, depth)}</th>)}</tr></thead>
        <tbody>{table.rows.map((row) => <tr>{row.map((cell, at) => <td class={kind(at)}>{inline(cell.tokens, depth)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined, depth: number): ComponentChildren {
  if (depth > DEEPEST) return <Shown text={(tokens ?? []).map((token) => token.raw).join("")} prose />;
  return (tokens ?? []).map((token) => span(token, depth + 1));
}

function span(token: Token, depth: number): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens, depth)}</strong>;
    case "em":
      return <em>{inline(token.tokens, depth)}</em>;
    case "del":
      return <del>{inline(token.tokens, depth)}</del>;
    case "codespan":
      return <code><Shown text={(token as Tokens.Codespan).text} /></code>;
    case "br":
      return <br />;
    case "link":
      return <Inert address={(token as Tokens.Link).href}>{inline(token.tokens, depth)}</Inert>;
    case "image": {
      const image = token as Tokens.Image;
      return <Inert address={image.href}><span class="faint">[image, not loaded: <Shown text={image.text} prose />]</span></Inert>;
    }
    case "escape":
    case "text":
      return token.type === "text" && token.tokens ? inline(token.tokens, depth) : <Shown text={unescaped((token as Tokens.Text).text)} prose />;
    default:
      return <Shown text={token.raw} prose />;
  }
}

/** The entities that stand for signs of markup, which Markdown reads as the signs. */
function unescaped(text: string): string {
  const signs: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => signs[entity] ?? entity);
}
