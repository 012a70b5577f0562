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

/** Follows a run for as long as the component is shown; what comes in is drawn at most once a frame. */
export function useRun(id: string): Followed {
  const [followed, setFollowed] = useState<Followed>(() => empty());
  useEffect(() => {
    const story = new Story();
    const aborting = new AbortController();
    let [connection, why, error]: [Connection, string, Error | null] = ["joining", "", null];
    let planned = 0;
    const draw = () => {
      planned = 0;
      setFollowed({ items: story.items.slice(), head: story.head, connection, why, error });
    };
    // A page in the background gets no frames, and is brought up to date all the same.
    const plan = () => (planned ||= document.hidden ? window.setTimeout(draw, 250) : requestAnimationFrame(draw));
    setFollowed(empty());
    const hearing = {
      event: (event: Parameters<Story["take"]>[0]) => (story.take(event), plan()),
      live: (kind: string, data: Record<string, unknown>) => (story.live(kind, data), plan()),
      connection: (state: Connection, said: string) => (([connection, why] = [state, said]), plan()),
    };
    follow(id, hearing, aborting.signal).catch((failed: Error) => {
      if (aborting.signal.aborted) return;
      error = failed;
      plan();
    });
    return () => {
      aborting.abort();
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
