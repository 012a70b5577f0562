/** Which page is shown: the address below the place where the server mounts the page, and what follows its "?". */

import { useEffect, useState } from "preact/hooks";

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, "");

export interface Place {
  path: string[];
  query: URLSearchParams;
}

/** The address of a page of ours, such as `address("runs", id)`. */
export function address(...path: (string | number)[]): string {
  return `${BASE}/${path.map((part) => encodeURIComponent(String(part))).join("/")}`;
}

function here(): Place {
  const inner = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : location.pathname;
  const path = inner.split("/").filter(Boolean);
  return { path: path.map(decoded), query: new URLSearchParams(location.search) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const listeners = new Set<() => void>();

/** Goes to a page of ours; with `instead` the one that is shown is not kept in the browser's history. */
export function go(to: string, { instead = false } = {}): void {
  if (instead) history.replaceState(null, "", to);
  else {
    history.pushState(null, "", to);
    scrollTo(0, 0);
  }
  for (const listener of listeners) listener();
}

/** The place that is shown, kept up to date. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const changed = () => setPlace(here());
    listeners.add(changed);
    addEventListener("popstate", changed);
    return () => {
      listeners.delete(changed);
      removeEventListener("popstate", changed);
    };
  }, []);
  return place;
}

/** Has a click on a link of ours change the page without loading it anew; other links, and other clicks, are the browser's. */
export function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element).closest("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (!link.dataset["page"]) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
}
