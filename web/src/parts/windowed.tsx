/**
 * A long list of which only what is seen is in the page, whatever the height of each item. It can follow its end: that
 * stops when somebody scrolls away from it, and goes on when they scroll back.
 */

import { options, type ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

const AROUND = 600;
const AT_END = 24;

interface Props<T> {
  items: readonly T[];
  keyOf(item: T): string;
  render(item: T): ComponentChildren;
  label: string;
  /** Pixels that an item takes as long as nobody has seen it. */
  likely: number;
  following?: boolean;
  onFollowing?(following: boolean): void;
  /** The item to begin at, and to go to whenever it changes. */
  at?: string;
}

/** Shows `items` in a region that scrolls. */
export function Windowed<T>({ items, keyOf, render, label, likely, following = false, onFollowing, at }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [, setMeasured] = useState(0);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const printing = usePrinting();
  const programmed = useRef(0);

  const keys = useMemo(() => items.map(keyOf), [items]);
  const tops = offsets(keys, heights.current, likely);
  const whole = tops[keys.length] ?? 0;
  const first = printing ? 0 : place(tops, seen.top - AROUND);
  const last = printing ? keys.length : Math.min(keys.length, place(tops, seen.top + seen.height + AROUND) + 1);

  const moveTo = useCallback((top: number) => {
    const element = box.current;
    if (!element) return;
    programmed.current = performance.now();
    element.scrollTop = top;
    setSeen({ top: element.scrollTop, height: element.clientHeight });
  }, []);

  const measure = useMeasured((sizes) => {
    const element = box.current;
    if (!element) return;
    let above = 0;
    let changed = false;
    for (const [key, height] of sizes) {
      const old = heights.current.get(key) ?? likely;
      if (Math.abs(old - height) < 0.5 && heights.current.has(key)) continue;
      heights.current.set(key, height);
      changed = true;
      const where = keys.indexOf(key);
      if (where >= 0 && (tops[where] ?? 0) + old <= element.scrollTop) above += height - old;
    }
    if (!changed) return;
    // What is looked at stays where it is, whatever turns out above it.
    if (above && !following) {
      programmed.current = performance.now();
      element.scrollTop += above;
    }
    setMeasured((count) => count + 1);
  });

  useLayoutEffect(() => {
    if (following && box.current) moveTo(box.current.scrollHeight);
  }, [following, items, whole]);

  useEffect(() => {
    if (!at) return;
    const where = keys.indexOf(at);
    if (where >= 0) moveTo(tops[where] ?? 0);
  }, [at, keys.length > 0]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setSeen({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, []);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    setSeen({ top: element.scrollTop, height: element.clientHeight });
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (!onFollowing || performance.now() - programmed.current < 120) return;
    if (following && left > AT_END * 3) onFollowing(false);
    else if (!following && left < AT_END) onFollowing(true);
  };
  // A wheel or a key away from the end counts at once, however fast news come in.
  const away = () => following && onFollowing?.(false);

  return (
    <div
      class="windowed" ref={box} tabIndex={0} role="region" aria-label={label} onScroll={onScroll}
      onWheel={(event) => event.deltaY < 0 && away()}
      onKeyDown={(event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && away()}
    >
      <div role="list" aria-label={label}>
        <div style={{ height: `${tops[first] ?? 0}px` }} />
        {items.slice(first, last).map((item, near) => (
          <div key={keys[first + near]} ref={measure(keys[first + near] ?? "")} role="listitem" aria-setsize={keys.length} aria-posinset={first + near + 1}>
            {render(item)}
          </div>
        ))}
        <div style={{ height: `${Math.max(0, whole - (tops[last] ?? whole))}px` }} />
      </div>
    </div>
  );
}

function offsets(keys: readonly string[], heights: Map<string, number>, likely: number): Float64Array {
  const tops = new Float64Array(keys.length + 1);
  for (let at = 0; at < keys.length; at++) tops[at + 1] = tops[at]! + (heights.get(keys[at]!) ?? likely);
  return tops;
}

/** The item that stands at a height. */
function place(tops: Float64Array, height: number): number {
  let [low, high] = [0, Math.max(0, tops.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle]! <= height) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Tells the heights of the elements that it is given. */
function useMeasured(told: (sizes: [string, number][]) => void): (key: string) => (element: Element | null) => void {
  const tell = useRef(told);
  tell.current = told;
  const known = useRef({ names: new Map<Element, string>(), refs: new Map<string, (element: Element | null) => void>() });
  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        const sizes: [string, number][] = [];
        for (const entry of entries) {
          const key = known.current.names.get(entry.target);
          if (key !== undefined) sizes.push([key, entry.target.getBoundingClientRect().height]);
        }
        tell.current(sizes);
      }),
    [],
  );
  useEffect(() => () => observer.disconnect(), [observer]);
  return (key) => {
    const { names, refs } = known.current;
    const old = refs.get(key);
    if (old) return old;
    let shown: Element | null = null;
    const ref = (element: Element | null) => {
      if (element) {
        shown = element;
        names.set(element, key);
        observer.observe(element);
      } else if (shown) {
        observer.unobserve(shown);
        names.delete(shown);
        refs.delete(key);
      }
    };
    refs.set(key, ref);
    return ref;
  };
}

/** Whether the page is being printed: then all of the list is in it. */
function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const change = (value: boolean) => () => {
      // The browser takes its picture as soon as this returns.
      const later = options.debounceRendering;
      options.debounceRendering = (render) => render();
      setPrinting(value);
      if (later) options.debounceRendering = later;
      else delete options.debounceRendering;
    };
    const [before, after] = [change(true), change(false)];
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => {
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  }, []);
  return printing;
}
