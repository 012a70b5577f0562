/** What the server says, in a component: asked for when it is first shown and whenever `query` changes. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "./client";

export interface Asked<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  again(): void;
}

const BURST = 120;

/**
 * Asks for `path` (null: for nothing), again whenever `news` is another, and `every` milliseconds as long as the page is
 * looked at. What is known is shown until there is something newer.
 */
export function useGet<T>(path: string | null, query: Record<string, unknown> = {}, { every = 0, news = "" }: { every?: number; news?: string | number } = {}): Asked<T> {
  const [state, setState] = useState<{ data: T | null; error: Error | null; loading: boolean }>({
    data: null,
    error: null,
    loading: path !== null,
  });
  const [round, setRound] = useState(0);
  const key = `${path}?${JSON.stringify(query)}`;
  const shown = useRef(key);
  const asked = useRef(false);
  useEffect(() => {
    if (path === null) return;
    const aborting = new AbortController();
    let timer = 0;
    const stale = shown.current !== key;
    shown.current = key;
    const known = !stale && asked.current;
    asked.current = true;
    setState((old) => ({ data: stale ? null : old.data, error: old.error, loading: true }));
    const ask = async () => {
      try {
        // News come in bursts, and only the last of them is worth a question.
        if (known) await new Promise((done) => setTimeout(done, BURST));
        if (aborting.signal.aborted) return;
        if (!document.hidden || !every) {
          const data = await get<T>(path, query, aborting.signal);
          setState({ data, error: null, loading: false });
        }
      } catch (error) {
        if (aborting.signal.aborted) return;
        setState((old) => ({ data: old.data, error: error as Error, loading: false }));
      }
      if (every && !aborting.signal.aborted) timer = window.setTimeout(ask, every);
    };
    void ask();
    return () => {
      aborting.abort();
      clearTimeout(timer);
    };
  }, [key, every, news, round]);
  const again = useCallback(() => setRound((old) => old + 1), []);
  return { ...state, again };
}

/** Runs what a person asked for, one at a time, and keeps what went wrong to be shown. */
export function useDoing(): { busy: boolean; error: Error | null; run(work: () => Promise<unknown>): Promise<void>; clear(): void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const under = useRef(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    if (under.current) return;
    under.current = true;
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failed) {
      setError(failed as Error);
    } finally {
      under.current = false;
      setBusy(false);
    }
  }, []);
  return { busy, error, run, clear: useCallback(() => setError(null), []) };
}
