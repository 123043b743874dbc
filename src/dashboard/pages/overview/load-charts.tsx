import { useMemo } from "react";
import { Chart } from "../../parts/chart/chart.tsx";
import { bytesText, numberText } from "../../parts/format.ts";
import type { Sample } from "./health.ts";

const HINT = "Since you opened the dashboard";

/** What the server holds: live connections and memory. */
export function LoadCharts({ samples }: { samples: readonly Sample[] }) {
  const times = useMemo(() => samples.map(({ at }) => at), [samples]);
  const sockets = useMemo(
    () => ({
      title: "Live sockets",
      times,
      format: numberText,
      least: 4,
      series: [
        { name: "Realtime", colour: "blue", values: samples.map(({ realtime }) => realtime) },
        { name: "Rooms", colour: "teal", values: samples.map(({ rooms }) => rooms) },
      ] as const,
    }),
    [samples, times],
  );
  const memory = useMemo(
    () => ({
      title: "Memory",
      times,
      format: bytesText,
      least: 1_000_000,
      series: [{ name: "Resident", colour: "teal", values: samples.map(({ memoryBytes }) => memoryBytes) }] as const,
    }),
    [samples, times],
  );
  return (
    <>
      <Chart data={sockets} hint={HINT} />
      <Chart data={memory} hint={HINT} />
    </>
  );
}
