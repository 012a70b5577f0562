/** Small pieces that many pages are made of. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Refused } from "../api/client";
import { Shown } from "./text";

const SIGNS: Record<string, string> = {
  running: "◐", left: "◌", waiting: "?", finished: "✓", stopped: "■", failed: "✕", cancelled: "⊘", damaged: "!", gone: "∅",
};
const WORDS: Record<string, string> = { left: "nobody drives it", waiting: "waits for you", stopped: "stopped by a limit", gone: "not there" };

/** How a run stands, by a sign, a colour and a word. */
export function Status({ status }: { status: string }) {
  return (
    <span class={`status ${status}`}>
      <span aria-hidden="true">{SIGNS[status] ?? "·"}</span> {WORDS[status] ?? status}
    </span>
  );
}

/** What went wrong, and what to do. */
export function Failure({ error, onAgain }: { error: Error | null; onAgain?(): void }) {
  if (!error) return null;
  const advice = error instanceof Refused ? error.advice : "";
  return (
    <div class="failure" role="alert">
      <Shown text={error.message || "Something went wrong."} /> {advice && <Shown text={advice} />}
      {onAgain && <button type="button" class="quiet" onClick={onAgain}>Try again</button>}
    </div>
  );
}

/** A dialog above the page; Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, wide = false, children }: { title: string; onClose(): void; wide?: boolean; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={dialog} class={wide ? "wide" : undefined} aria-labelledby={name} onClose={onClose}>
      <header>
        <h2 id={name}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>✕</button>
      </header>
      {children}
    </dialog>
  );
}

/** Something that stays closed until it is asked for; what is in it is only made then. */
export function Fold({ title, open = false, children }: { title: ComponentChildren; open?: boolean; children(): ComponentChildren }) {
  const [shown, setShown] = useState(open);
  return (
    <details open={open} onToggle={(event) => setShown((event.target as HTMLDetailsElement).open)}>
      <summary>{title}</summary>
      {shown && children()}
    </details>
  );
}

/** A field with its name above it. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small class="faint">{hint}</small>}
    </label>
  );
}

/** Figures with their names. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Says something to those who cannot see it happen. */
export function Told({ children }: { children: string }) {
  return <div class="unseen" role="status" aria-live="polite">{children}</div>;
}

/** Sets the title of the browser's window. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · treadle` : "treadle";
  }, [title]);
}
