import "uplot/dist/uPlot.min.css";
import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useEffectEvent, useRef } from "react";
import UPlot from "uplot";
import { CHART_HEIGHT_PX, type ChartData, colourOf } from "./data.ts";

const AXIS_WIDTH_PX = 58;
const AXIS_HEIGHT_PX = 24;
const LINE_WIDTH_PX = 1.5;
const FILL_ALPHA = "1a";
const LABELS_APART_PX = 70;
const DAY_SECONDS = 86_400;
/** Minimum span of the time axis, in seconds. */
const SHORTEST_SECONDS = 300;
const POINT_PX = 4;
const SPARSE_MAX = 20;
const HEADROOM = 1.1;

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Canvas of a chart. `onPoint` receives the index under the pointer; null: none. */
export default function Drawing({ data, onPoint }: { data: ChartData; onPoint(index: number | null): void }) {
  const { ref, width } = useElementSize();
  const canvas = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const colorScheme = useComputedColorScheme();
  const { times, series, least } = data;
  const point = useEffectEvent(onPoint);
  const format = useEffectEvent(data.format);
  const current = useEffectEvent(() => valuesOf(data));
  const lines = JSON.stringify(series.map(({ name, colour }) => ({ name, colour })));

  // Recreated only for other lines and colours; new data is passed to the chart.
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const scheme = colorScheme;
    const made = new UPlot(
      optionsOf({
        width,
        least,
        // The JSON was made above.
        lines: JSON.parse(lines) as Pick<ChartData["series"][number], "name" | "colour">[],
        format: (value) => format(value),
        onPoint: (index) => point(index),
      }),
      current(),
      canvas.current,
    );
    made.root.dataset["scheme"] = scheme;
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [width, lines, least, colorScheme]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: these are the data
  useEffect(() => plot.current?.setData(current()), [times, series]);

  return (
    <div ref={ref} role="img" aria-label={summaryOf(data)} style={{ minHeight: CHART_HEIGHT_PX }}>
      <div ref={canvas} />
    </div>
  );
}

/** Returns the chart's data. A single time would get an axis of years, so another is added before it. */
function valuesOf({ times, series }: ChartData): UPlot.AlignedData {
  const seconds = times.map((time) => time / 1000);
  const [first] = seconds;
  if (first === undefined || seconds.length > 1) return [seconds, ...series.map(({ values }) => [...values])];
  return [[first - SHORTEST_SECONDS, first], ...series.map(({ values }) => [null, ...values])];
}

/** Describes the chart for screen readers. */
function summaryOf({ title, series, format }: ChartData): string {
  const lines = series.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: no data`;
    const last = known.at(-1) ?? 0;
    return `${name}: ${format(last)} now, between ${format(Math.min(...known))} and ${format(Math.max(...known))}`;
  });
  return `${title}. ${lines.join("; ")}`;
}

/** Few values are drawn as points, as a value between two gaps has no line. */
const isSparse = ({ data }: UPlot, index: number): boolean => {
  let known = 0;
  for (const value of data[index] ?? []) if (value !== null && value !== undefined) known++;
  return known <= SPARSE_MAX;
};

function optionsOf({
  width,
  lines,
  least,
  format,
  onPoint,
}: {
  width: number;
  least: number;
  lines: readonly Pick<ChartData["series"][number], "name" | "colour">[];
  format(value: number): string;
  onPoint(index: number | null): void;
}): UPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--chart-text"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  const grid = { stroke: colour("--chart-grid"), width: 1 };
  return {
    width,
    height: CHART_HEIGHT_PX,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { range: (_, from, to) => [Math.min(from, to - SHORTEST_SECONDS), to] },
      y: { range: (_, __, max) => [0, Math.max(max * HEADROOM, least)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: AXIS_HEIGHT_PX,
        space: LABELS_APART_PX,
        values: (_, splits, __, ___, step) =>
          splits.map((at) => (step >= DAY_SECONDS ? days : clock).format(at * 1000)),
      },
      { ...axis, grid, size: AXIS_WIDTH_PX, values: (_, splits) => splits.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ name, colour: own }) => {
        const stroke = colour(colourOf(own).slice(4, -1));
        return {
          label: name,
          stroke,
          fill: `${stroke}${FILL_ALPHA}`,
          width: LINE_WIDTH_PX,
          points: { size: POINT_PX, show: isSparse },
        };
      }),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}
