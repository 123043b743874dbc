import type { ReportRange } from "../../../client/admin/index.ts";

export type Range = NonNullable<ReportRange["range"]>;

export const RANGES: readonly Range[] = ["1h", "6h", "24h", "7d", "30d"];

const HOUR_MS = 3_600_000;

/** Length of a range, its steps in a time series, and the hint that a chart shows beside its names. */
export const STEPS: Readonly<
  Record<Range, { ms: number; groupBy: NonNullable<ReportRange["groupBy"]>; hint: string }>
> = {
  "1h": { ms: HOUR_MS, groupBy: "minute", hint: "Numbers of the last minute" },
  "6h": { ms: 6 * HOUR_MS, groupBy: "minute", hint: "Numbers of the last minute" },
  "24h": { ms: 24 * HOUR_MS, groupBy: "hour", hint: "Numbers of the last hour" },
  "7d": { ms: 7 * 24 * HOUR_MS, groupBy: "hour", hint: "Numbers of the last hour" },
  "30d": { ms: 30 * 24 * HOUR_MS, groupBy: "day", hint: "Numbers of the last day, UTC" },
  "90d": { ms: 90 * 24 * HOUR_MS, groupBy: "day", hint: "Numbers of the last day, UTC" },
};
