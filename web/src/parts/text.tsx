/** Text that somebody else wrote: shown as it is, character by character, and never as markup. */

import { useState } from "preact/hooks";
import { isJson, laidOut } from "../api/json";
import type { Content, Part } from "../api/types";
import { grouped } from "./figures";
import { pieces } from "./visible";

/** A text on a line or several; what cannot be seen stands as an escape. */
export function Shown({ text, prose = false }: { text: string; prose?: boolean }) {
  return (
    <bdi>
      {pieces(text, prose).map((piece) => (piece.escaped ? <span class="escape">{piece.text}</span> : piece.text))}
    </bdi>
  );
}

const MOST = 6000;

/** A text of any length as it stands; the rest of a long one is shown when asked for. */
export function Verbatim({ text, label, json = false }: { text: string; label: string; json?: boolean }) {
  const [whole, setWhole] = useState(false);
  const said = json && isJson(text) ? laidOut(text) : text;
  const cut = !whole && said.length > MOST;
  return (
    <div class="verbatim">
      <pre tabIndex={0} role="region" aria-label={label} dir="ltr">
        <Shown text={cut ? said.slice(0, MOST) : said} />
        {said === "" && <span class="faint">(empty)</span>}
      </pre>
      {cut && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all {grouped(said.length)} characters
        </button>
      )}
    </div>
  );
}

/** What a message or a result holds: texts, images and files. */
export function Contents({ content, label }: { content: Content | null; label: string }) {
  if (content === null) return null;
  if (typeof content === "string") return <Verbatim text={content} label={label} json />;
  return (
    <>
      {content.map((part, at) =>
        part.type === "text" ? <Verbatim text={part.text ?? ""} label={label} json key={at} /> : <Media part={part} key={at} />,
      )}
    </>
  );
}

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** An image or a file: what it is, and the picture itself if its bytes are here and somebody asks. Nothing is fetched. */
export function Media({ part }: { part: Part }) {
  const [open, setOpen] = useState(false);
  const kind = part.media_type ?? "";
  const inside = part.data ? `${grouped(Math.floor((part.data.length * 3) / 4))} bytes` : "at an address";
  return (
    <figure class="media">
      <figcaption>
        {part.type} <Shown text={`${part.name ?? ""} ${kind}`} /> · {inside} {part.url && <Inert address={part.url} />}
        {part.data && PICTURES.has(kind) && (
          <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "Hide" : "Show"} the picture
          </button>
        )}
      </figcaption>
      {open && part.data && <img src={`data:${kind};base64,${part.data}`} alt={part.name ?? "picture from the run"} />}
    </figure>
  );
}

/** A link that does nothing until its address has been seen: then it can be opened, in a page that knows nothing of us. */
export function Inert({ address, children }: { address: string; children?: preact.ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const safe = /^(https?|mailto):/i.test(address.trim());
  return (
    <span class="inert">
      {children}
      <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        {children ? "address" : "show the address"}
      </button>
      {open && (
        <span class="address">
          <Shown text={address} />
          {safe ? (
            <a href={address} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer">
              open it
            </a>
          ) : (
            <span class="faint">(no address of the web)</span>
          )}
        </span>
      )}
    </span>
  );
}
