/** Figures as people read them. What is not known is said to be unknown; nothing is rounded that is money. */

import { Exact } from "../api/json";

export type Figure = number | string | Exact | null | undefined;

/** Digits in groups of three; a decimal stays as it is written. */
export function grouped(value: Figure): string {
  if (value === null || value === undefined) return "";
  const [, sign = "", whole = "", rest = ""] = /^(-?)(\d+)(.*)$/s.exec(String(value)) ?? [];
  if (whole === "") return String(value);
  return `${sign ? "−" : ""}${whole.replace(/\B(?=(\d{3})+$)/g, ",")}${rest}`;
}

/** Dollars with all their digits. */
export function dollars(value: Figure): string {
  if (value === null || value === undefined) return "unknown";
  const text = plain(String(value));
  return text.startsWith("-") ? `−$${grouped(text.slice(1))}` : `$${grouped(text)}`;
}

/** A decimal without an exponent, and with two places at least where it has any. */
function plain(text: string): string {
  const found = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (!found) return text;
  const [, sign = "", whole = "", part = "", exponent = "0"] = found;
  const places = Math.max(0, part.length - Number(exponent));
  const all = (whole + part + "0".repeat(Math.max(0, Number(exponent) - part.length))).padStart(places + 1, "0");
  const left = all.slice(0, all.length - places).replace(/^0+(?=\d)/, "");
  const right = (places ? all.slice(-places) : "").replace(/0+$/, "");
  if (right === "") return left === "0" ? "0" : `${sign}${left}.00`;
  return `${sign}${left}.${right.padEnd(2, "0")}`;
}

/** Seconds as people say them. */
export function lasting(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0005) return seconds > 0 ? "< 1 ms" : "0 s";
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${rest} s`;
}

/** A time in the reader's own zone: with its date unless it is today's. */
export function moment(at: number | null | undefined): string {
  if (!at) return "";
  const time = new Date(at * 1000);
  const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  if (time.toDateString() === new Date().toDateString()) return clock;
  const two = (part: number) => String(part).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock}`;
}

/** A share in percent; one that is not nothing does not look like it, and one that is not all neither. */
export function percent(share: number): string {
  if (share > 0 && share < 0.05) return "< 0.1 %";
  if (share < 100 && share >= 99.95) return "> 99.9 %";
  return `${share.toFixed(1)} %`;
}

/** A number of things, with its noun. */
export function count(number: Figure, noun: string): string {
  return `${grouped(number ?? 0)} ${noun}${String(number) === "1" ? "" : "s"}`;
}
