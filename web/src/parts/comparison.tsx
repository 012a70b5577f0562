/** A comparison of the analyst as figures, bars and tables; from a part of it to its keys, and from a key to its figures. */

import { useState } from "preact/hooks";
import type { Amount } from "../api/types";
import { Dialog, Facts } from "./frame";
import { grouped, percent } from "./figures";
import { Shown, Verbatim } from "./text";

interface Row {
  key: Record<string, unknown>;
  source_a_value: Amount;
  source_b_value: Amount;
  diff: Amount;
  absolute_diff: Amount;
  percentage_diff: Amount;
  status: string;
  reason: string;
  rows_a: number;
  rows_b: number;
}

interface Part {
  value: unknown;
  source_a_value: Amount;
  source_b_value: Amount;
  absolute_diff: Amount;
  differences: number;
  rows: number;
  share: number;
  currency?: string | null;
}

export interface Comparison {
  source_a: string;
  source_b: string;
  measure: string;
  unit: string;
  dimensions: string[];
  filters: string[];
  summary: Record<string, Amount> & { by_currency?: Record<string, Amount>[] };
  top_differences: Row[];
  by_dimension: Record<string, Part[]>;
  interpretation: string;
  warnings: { message: string }[];
  rows?: Row[];
  rows_cut?: boolean;
  sql?: string[];
  claims?: { message: string; sql?: string }[];
  more?: Comparison[];
}

/** The comparison that a tool's result is; null if it is something else. */
export function comparisonIn(...found: unknown[]): Comparison | null {
  for (const one of found) {
    const value = one as Partial<Comparison> | null;
    if (value && typeof value === "object" && value.summary && Array.isArray(value.top_differences) && value.by_dimension && "total_rows" in value.summary)
      return value as Comparison;
  }
  return null;
}

const CLASSES: [string, string, string][] = [
  ["match", "matches", "match"],
  ["minor_diff", "minor_differences", "minor difference"],
  ["major_diff", "major_differences", "major difference"],
  ["missing_in_a", "missing_in_a", "missing in A"],
  ["missing_in_b", "missing_in_b", "missing in B"],
];

/** Shows a comparison; `onAsk` says something to whoever made it. */
export function ComparisonView({ found, onAsk }: { found: Comparison; onAsk?: ((question: string) => void) | undefined }) {
  const [only, setOnly] = useState<{ name: string; value: unknown } | null>(null);
  const [status, setStatus] = useState<string | null>(null);
  const [opened, setOpened] = useState<Row | null>(null);
  const every = found.rows?.length ? found.rows : found.top_differences;
  const listed = (only || status ? every : found.top_differences).filter(
    (row) => (!only || shownKey(row.key[only.name]) === shownKey(only.value)) && (!status || row.status === status),
  );
  return (
    <section class="comparison" aria-label={`${found.measure}: ${found.source_a} against ${found.source_b}`}>
      <h3>
        <Shown text={found.measure} />: <Shown text={found.source_a} /> (A) against <Shown text={found.source_b} /> (B)
      </h3>
      {found.filters.length > 0 && <p class="faint">where <Shown text={found.filters.join(" and ")} /></p>}
      <p><Shown text={found.interpretation} prose /></p>
      {found.warnings.length > 0 && (
        <ul class="warnings" aria-label="Warnings">{found.warnings.map((one) => <li><Shown text={one.message} prose /></li>)}</ul>
      )}
      <Totals found={found} />
      <Classes found={found} chosen={status} onChoose={setStatus} />
      {Object.entries(found.by_dimension).filter(([, parts]) => parts.length).map(([name, parts]) => (
        <Parts name={name} parts={parts} chosen={only?.name === name ? only.value : undefined} onChoose={(value) => setOnly(value === undefined ? null : { name, value })} />
      ))}
      <h4>
        {only || status ? (
          <>
            Keys{only && <> of <Shown text={`${only.name} ${shownKey(only.value)}`} /></>}{status && ` that are ${status.replaceAll("_", " ")}`}{" "}
            <button type="button" class="quiet" onClick={() => { setOnly(null); setStatus(null); }}>show the largest differences</button>
          </>
        ) : "The largest differences"}
      </h4>
      <Rows found={found} rows={listed.slice(0, 200)} onOpen={setOpened} />
      {listed.length > 200 && <p class="faint">The first 200 of {grouped(listed.length)}.</p>}
      {found.rows_cut && <p class="faint">There are more keys than were kept.</p>}
      {opened && <Behind found={found} row={opened} onClose={() => setOpened(null)} onAsk={onAsk} />}
      {(found.more ?? []).map((other) => <ComparisonView found={other} onAsk={onAsk} />)}
    </section>
  );
}

function Totals({ found }: { found: Comparison }) {
  const { summary } = found;
  const unit = found.unit ? ` ${found.unit}` : "";
  if (summary.by_currency?.length)
    return (
      <div class="scroll" tabIndex={0} role="region" aria-label="Totals by currency">
        <table>
          <thead><tr><th scope="col">currency</th>{["A", "B", "A − B"].map((head) => <th scope="col" class="n">{head}</th>)}</tr></thead>
          <tbody>{summary.by_currency.map((one) => (
            <tr><th scope="row"><Shown text={String(one["currency"] ?? "(none)")} /></th><td class="n">{grouped(one["source_a_value"])}</td><td class="n">{grouped(one["source_b_value"])}</td><td class="n">{grouped(one["diff"])}</td></tr>
          ))}</tbody>
        </table>
      </div>
    );
  return (
    <Facts facts={[
      ["A", `${grouped(summary["total_source_a"])}${unit}`], ["B", `${grouped(summary["total_source_b"])}${unit}`],
      ["A − B", `${grouped(summary["total_diff"])}${unit}`], ["keys that match", summary["match_rate"] === null ? "" : `${String(summary["match_rate"])} %`],
    ]} />
  );
}

function Classes({ found, chosen, onChoose }: { found: Comparison; chosen: string | null; onChoose(status: string | null): void }) {
  const total = Number(found.summary["total_rows"]);
  if (!total) return null;
  let at = 0;
  const counts = CLASSES.map(([name, field, label]) => ({ name, label, count: Number(found.summary[field]) }));
  return (
    <div class="classes">
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label={counts.map((one) => `${one.count} ${one.label}`).join(", ")}>
        {counts.filter((one) => one.count).map((one) => {
          const [x, width] = [Math.min(at, 996), Math.max((one.count / total) * 1000, 4)];
          at += (one.count / total) * 1000;
          return <rect x={x} width={width} y="0" height="10" class={one.name} />;
        })}
      </svg>
      <div class="chips">
        {counts.map((one) => (
          <button type="button" class={`chip ${one.name}`} aria-pressed={chosen === one.name} disabled={!one.count} onClick={() => onChoose(chosen === one.name ? null : one.name)}>
            {grouped(one.count)} {one.label}
          </button>
        ))}
      </div>
    </div>
  );
}

function Parts({ name, parts, chosen, onChoose }: { name: string; parts: Part[]; chosen: unknown; onChoose(value: unknown): void }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Where the differences are, by ${name}`}>
      <table>
        <caption>Where the differences are, by <Shown text={name} /></caption>
        <thead><tr><th scope="col"><Shown text={name} /></th><th scope="col" class="n">|A − B|</th><th scope="col">share</th><th scope="col" class="n">keys that differ</th></tr></thead>
        <tbody>
          {parts.map((part) => (
            <tr class={chosen !== undefined && shownKey(part.value) === shownKey(chosen) ? "chosen" : undefined}>
              <th scope="row">
                <button type="button" class="link" onClick={() => onChoose(chosen !== undefined && shownKey(part.value) === shownKey(chosen) ? undefined : part.value)}>
                  <Shown text={`${shownKey(part.value)}${part.currency ? ` ${part.currency}` : ""}`} />
                </button>
              </th>
              <td class="n">{grouped(part.absolute_diff)}</td>
              <td class="share"><meter min={0} max={100} value={Number(part.share)} aria-label={percent(Number(part.share))} /> {percent(Number(part.share))}</td>
              <td class="n">{grouped(part.differences)} of {grouped(part.rows)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Rows({ found, rows, onOpen }: { found: Comparison; rows: Row[]; onOpen(row: Row): void }) {
  const largest = Math.max(...rows.map((row) => Math.abs(Number(row.diff))), 0);
  if (!rows.length) return <p class="faint">Nothing differs.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Keys">
      <table>
        <thead>
          <tr>
            {found.dimensions.map((name) => <th scope="col"><Shown text={name} /></th>)}
            {["A", "B", "A − B"].map((head) => <th scope="col" class="n">{head}</th>)}
            <th scope="col"><span class="unseen">size of the difference</span></th>
            <th scope="col">class</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {found.dimensions.map((name, at) => at === 0
                ? <th scope="row"><button type="button" class="link" onClick={() => onOpen(row)}><Shown text={shownKey(row.key[name])} /></button></th>
                : <td><Shown text={shownKey(row.key[name])} /></td>)}
              <td class="n">{grouped(row.source_a_value)}</td>
              <td class="n">{grouped(row.source_b_value)}</td>
              <td class="n">{found.dimensions.length ? grouped(row.diff) : <button type="button" class="link" onClick={() => onOpen(row)}>{grouped(row.diff)}</button>}</td>
              <td class="bar"><Bar diff={Number(row.diff)} largest={largest} status={row.status} /></td>
              <td class={row.status}>{row.status.replaceAll("_", " ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Bar({ diff, largest, status }: { diff: number; largest: number; status: string }) {
  if (!largest || !diff) return null;
  const width = Math.max((Math.abs(diff) / largest) * 50, 0.7);
  return (
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect x={diff > 0 ? 50 : 50 - width} width={width} y="1" height="8" class={status} />
      <line x1="50" x2="50" y1="0" y2="10" />
    </svg>
  );
}

function Behind({ found, row, onClose, onAsk }: { found: Comparison; row: Row; onClose(): void; onAsk?: ((question: string) => void) | undefined }) {
  const key = found.dimensions.map((name) => `${name} ${shownKey(row.key[name])}`).join(", ");
  const where = [...found.dimensions.map((name) => `${name} ${shownKey(row.key[name])}`), ...found.filters].join(" and ");
  return (
    <Dialog title={key || "The total"} onClose={onClose}>
      <Facts facts={[
        [`A: ${found.source_a}`, grouped(row.source_a_value) || "(none)"], [`B: ${found.source_b}`, grouped(row.source_b_value) || "(none)"],
        ["A − B", grouped(row.diff)], ["of A", row.percentage_diff === null ? "" : `${String(row.percentage_diff)} %`],
        ["rows of A", grouped(row.rows_a)], ["rows of B", grouped(row.rows_b)], ["class", row.status.replaceAll("_", " ")],
      ]} />
      <p><Shown text={row.reason} prose /></p>
      {found.sql?.length ? <details><summary>The SQL that makes these figures</summary><Verbatim text={found.sql.join(";\n\n")} label="SQL" /></details> : null}
      {onAsk && (
        <button type="button" onClick={() => { onClose(); onAsk(`Which rows are behind the difference of ${found.measure} between ${found.source_a} and ${found.source_b} for ${where}?`); }}>
          Ask for the rows behind it
        </button>
      )}
    </Dialog>
  );
}

function shownKey(value: unknown): string {
  return value === null || value === undefined ? "(none)" : String(value);
}
