import "uplot/dist/uPlot.min.css";
import { Text, useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import { numberText } from "../../parts/format.tsx";
import { RESULT_CHART_HEIGHT_PX, type ResultChartData } from "./chart-data.ts";

const LABEL_CHARACTERS = 14;
const LABELS_APART_PX = 90;
const AXIS_WIDTH_PX = 70;
const AXIS_HEIGHT_PX = 28;
const BAR_SHARE = 0.7;
const BAR_MAX_PX = 80;
const HEADROOM = 1.1;

const cut = (text: string): string => (text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS)}…` : text);

/** Canvas of a result's chart, and the row under the pointer as text. */
export default function ChartDrawing({ data, label }: { data: ResultChartData; label: string }) {
  const { ref, width } = useElementSize();
  const canvas = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const colorScheme = useComputedColorScheme();
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const places = data.values.map((_, place) => place);
    const plot = new UPlot(optionsOf(data, width, setPointed), [places, [...data.values]], canvas.current);
    plot.root.dataset["scheme"] = colorScheme;
    return () => plot.destroy();
  }, [data, width, colorScheme]);
  const at = pointed === null ? undefined : data.labels[pointed];
  const value = pointed === null ? null : (data.values[pointed] ?? null);
  return (
    <div ref={ref}>
      <div ref={canvas} role="img" aria-label={label} dir="ltr" style={{ minHeight: RESULT_CHART_HEIGHT_PX }} />
      <Text size="xs" c="dimmed" className="number" dir="auto" mih={18} truncate>
        {at === undefined ? "" : `${at}: ${value === null ? "NULL" : numberText(value)}`}
      </Text>
    </div>
  );
}

function optionsOf(
  { kind, name, labels }: ResultChartData,
  width: number,
  onPoint: (place: number | null) => void,
): UPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (of: string): string => style.getPropertyValue(of).trim();
  const axis = { stroke: colour("--chart-text"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  const stroke = colour("--chart-blue");
  const isBars = kind === "bars";
  return {
    width,
    height: RESULT_CHART_HEIGHT_PX,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      // Half a place on both sides, for the first and the last bar.
      x: { time: false, range: (_, from, to) => [from - 0.5, to + 0.5] },
      y: { range: (_, min, max) => [Math.min(0, min * HEADROOM), Math.max(0, max * HEADROOM) || 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: AXIS_HEIGHT_PX,
        space: LABELS_APART_PX,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
        values: (_, splits) => splits.map((at) => (Number.isInteger(at) ? cut(labels[at] ?? "") : "")),
      },
      {
        ...axis,
        grid: { stroke: colour("--chart-grid"), width: 1 },
        size: AXIS_WIDTH_PX,
        values: (_, splits) => splits.map((value) => numberText(value)),
      },
    ],
    series: [
      {},
      {
        label: name,
        stroke,
        fill: `${stroke}${isBars ? "99" : "1a"}`,
        width: isBars ? 1 : 1.5,
        ...(isBars && UPlot.paths.bars !== undefined
          ? { paths: UPlot.paths.bars({ size: [BAR_SHARE, BAR_MAX_PX] }), points: { show: false } }
          : {}),
      },
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}
