import { useMemo } from "react";
import type { RequestPoint } from "../../../client/admin/index.ts";
import { millisText, numberText } from "../format.ts";
import { Chart } from "./chart.tsx";

interface RequestChart {
  points: readonly RequestPoint[];
  /** The range of time, and its steps. */
  hint: string;
}

const timesOf = (points: readonly RequestPoint[]): number[] => points.map(({ timestamp }) => timestamp);

/** How many requests were answered, refused and failed. */
export function RequestsChart({ points, hint }: RequestChart) {
  const data = useMemo(
    () => ({
      title: "Requests",
      times: timesOf(points),
      format: numberText,
      least: 4,
      series: [
        { name: "All", colour: "blue", values: points.map(({ requests }) => requests) },
        { name: "Refused (4xx)", colour: "orange", values: points.map(({ errors4xx }) => errors4xx) },
        { name: "Failed (5xx)", colour: "red", values: points.map(({ errors }) => errors) },
      ] as const,
    }),
    [points],
  );
  return <Chart data={data} hint={hint} />;
}

/** How long requests took. A step without requests has no time. */
export function ResponseTimesChart({ points, hint }: RequestChart) {
  const data = useMemo(() => {
    const values = (name: "p50" | "p95" | "p99") => points.map((point) => (point.requests === 0 ? null : point[name]));
    return {
      title: "Response times",
      times: timesOf(points),
      format: millisText,
      least: 1,
      series: [
        { name: "p50", colour: "teal", values: values("p50") },
        { name: "p95", colour: "blue", values: values("p95") },
        { name: "p99", colour: "orange", values: values("p99") },
      ] as const,
    };
  }, [points]);
  return <Chart data={data} hint={hint} />;
}
