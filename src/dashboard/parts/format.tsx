import { Text } from "@mantine/core";

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `1.5 MB` */
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
/** `3,201` */
export const numberText = (value: number): string => numbers.format(value);

/** `12.3 ms`, `1.25 s` */
export function millisText(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return ms >= 100 ? `${Math.round(ms)} ms` : `${Number(ms.toPrecision(3))} ms`;
}

const times = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const days = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const DAY = /^\d{4}-\d\d-\d\d$/;
/** The local time; of a day without a time, the day. Anything but a date is given back as it is. */
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

/** `3 minutes ago` */
export function agoText(time: string | number, now = Date.now()): string {
  const seconds = Math.round((new Date(time).getTime() - now) / 1000);
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? (["second", 1] as const);
  return relative.format(Math.trunc(seconds / size), unit);
}

/** When something was, by the distance from now; the exact time is its title. */
export function Ago({ time }: { time: string | number | null }) {
  if (time === null) return <Text c="dimmed">–</Text>;
  return (
    <time dateTime={new Date(time).toISOString()} title={timeText(time)}>
      {agoText(time)}
    </time>
  );
}
