/** A run as it is followed: its story, whether the connection stands, and what went wrong. */

import { useEffect, useState } from "preact/hooks";
import { follow, type Connection } from "../api/follow";
import { Story, type Head, type Item } from "./fold";

export interface Followed {
  items: readonly Item[];
  head: Head;
  connection: Connection;
  why: string;
  error: Error | null;
}

/** Milliseconds that a page in the background stays connected: a browser has few connections to one server. */
const HIDDEN = 20_000;

/** Follows a run for as long as the component is shown and looked at; what comes in is drawn at most once a frame. */
export function useRun(id: string): Followed {
  const [followed, setFollowed] = useState<Followed>(() => empty());
  useEffect(() => {
    const story = new Story();
    let [connection, why, error]: [Connection, string, Error | null] = ["joining", "", null];
    let [planned, leaving] = [0, 0];
    let aborting: AbortController | null = null;
    const draw = () => {
      planned = 0;
      setFollowed({ items: story.items.slice(), head: story.head, connection, why, error });
    };
    // A page in the background gets no frames, and is brought up to date all the same.
    const plan = () => (planned ||= document.hidden ? window.setTimeout(draw, 250) : requestAnimationFrame(draw));
    const hearing = {
      event: (event: Parameters<Story["take"]>[0]) => (story.take(event), plan()),
      live: (kind: string, data: Record<string, unknown>) => (story.live(kind, data), plan()),
      connection: (state: Connection, said: string) => {
        [connection, why] = [state, said];
        if (state === "live") story.settle();
        plan();
      },
    };
    const join = () => {
      if (aborting || connection === "ended" || error) return;
      const begun = (aborting = new AbortController());
      follow(id, story.head.events, hearing, begun.signal).catch((failed: Error) => {
        if (begun.signal.aborted) return;
        [connection, error] = ["ended", failed];
        plan();
      });
    };
    const leave = () => {
      aborting?.abort();
      aborting = null;
    };
    const looked = () => {
      clearTimeout(leaving);
      if (document.hidden) leaving = window.setTimeout(leave, HIDDEN);
      else join();
    };
    setFollowed(empty());
    join();
    document.addEventListener("visibilitychange", looked);
    return () => {
      document.removeEventListener("visibilitychange", looked);
      leave();
      clearTimeout(leaving);
      clearTimeout(planned);
      cancelAnimationFrame(planned);
    };
  }, [id]);
  return followed;
}

function empty(): Followed {
  const story = new Story();
  return { items: story.items, head: story.head, connection: "joining", why: "", error: null };
}
