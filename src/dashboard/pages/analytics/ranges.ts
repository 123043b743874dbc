import type { ReportRange } from "../../../client/admin/index.ts";

export type Range = NonNullable<ReportRange["range"]>;

export const RANGES: readonly Range[] = ["1h", "6h", "24h", "7d", "30d"];

/** Time series steps of a range, and the hint that a chart shows beside its names. */
export const STEPS: Readonly<Record<Range, { groupBy: NonNullable<ReportRange["groupBy"]>; hint: string }>> = {
  "1h": { groupBy: "minute", hint: "Numbers of the last minute" },
  "6h": { groupBy: "minute", hint: "Numbers of the last minute" },
  "24h": { groupBy: "hour", hint: "Numbers of the last hour" },
  "7d": { groupBy: "hour", hint: "Numbers of the last hour" },
  "30d": { groupBy: "day", hint: "Numbers of the last day, UTC" },
  "90d": { groupBy: "day", hint: "Numbers of the last day, UTC" },
};
