/**
 * Characters that cannot be seen, or that turn the writing direction, as escapes: what a person reads before they decide
 * is what will be done.
 */

// Controls, format characters (bidirectional ones, zero widths, tags), private use, unassigned, lone surrogates, line and
// paragraph separators, fillers that look like nothing, variation selectors, and spaces other than the plain one.
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|(?![ ])\p{Zs}/gu;
// In prose joiners and the selectors of emoji are part of the script; what reorders or hides text is not.
const IN_PROSE = /(?:\u200d|\u200c|[\ufe00-\ufe0f]|\u00a0|\u202f|\u00ad|\p{Co}|\p{Cn}|\u3000|[\u2000-\u200a])/u;

export interface Piece {
  text: string;
  escaped: boolean;
}

/** A text in pieces, those that are escapes marked; `prose` leaves what belongs to scripts and emoji as it is. */
export function pieces(text: string, prose = false): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    const unseen = match[0];
    if (unseen === "\n" || unseen === "\t" || (prose && IN_PROSE.test(unseen))) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index), escaped: false });
    found.push({ text: escapeOf(unseen), escaped: true });
    from = match.index + unseen.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), escaped: false });
  return found;
}

/** A text with escapes in place of what cannot be seen. */
export function visible(text: string): string {
  return pieces(text)
    .map((piece) => piece.text)
    .join("");
}

/** JSON text with its unseen characters as JSON's own escapes: it says the same, and can be edited as it is seen. */
export function visibleJson(text: string): string {
  return text.replace(UNSEEN, (unseen) =>
    unseen === "\n" || unseen === "\t"
      ? unseen
      : [...Array(unseen.length).keys()].map((at) => `\\u${unseen.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

function escapeOf(unseen: string): string {
  const code = unseen.codePointAt(0) ?? 0;
  if (code === 13) return "\\r";
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
