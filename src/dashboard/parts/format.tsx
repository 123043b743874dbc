import { Text } from "@mantine/core";

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Formats bytes, such as `1.5 MB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${UNITS[unit]}`;
}

const numbers = new Intl.NumberFormat("en");
/** Formats a number, such as `3,201`. */
export const numberText = (value: number): string => numbers.format(value);

/** Formats a duration, such as `12.3 ms` or `1.25 s`. */
export function millisText(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return ms >= 100 ? `${Math.round(ms)} ms` : `${Number(ms.toPrecision(3))} ms`;
}

const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const days = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const DAY = /^\d{4}-\d\d-\d\d$/;
/** Formats a time in local time; a date without a time as a date. Anything else is returned unchanged. */
export function timeText(time: string | number): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : (DAY.test(String(time)) ? days : times).format(date);
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** Formats a distance from now, such as `3 minutes ago`. */
export function agoText(time: string | number, now = Date.now()): string {
  const seconds = Math.round((new Date(time).getTime() - now) / 1000);
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? (["second", 1] as const);
  return relative.format(Math.trunc(seconds / size), unit);
}

/** Local time, with UTC as title. */
export function Time({ time }: { time: string | number }) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return <>{String(time)}</>;
  const utc = date.toISOString();
  return (
    <time dateTime={utc} title={utc}>
      {timeText(time)}
    </time>
  );
}

/** Time as its distance from now, with the exact time as title. */
export function Ago({ time }: { time: string | number | null }) {
  if (time === null) return <Text c="dimmed">–</Text>;
  return (
    <time dateTime={new Date(time).toISOString()} title={`${timeText(time)} (${new Date(time).toISOString()})`}>
      {agoText(time)}
    </time>
  );
}
