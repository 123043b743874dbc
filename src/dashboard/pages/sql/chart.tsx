import { Group, SegmentedControl, Select, Skeleton, Text } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import { giveLanguage } from "../../parts/chart/language.ts";
import { numberText } from "../../parts/format.tsx";
import { RESULT_CHART_HEIGHT_PX, type ResultChartData } from "./chart-data.ts";
import type { ResultRow } from "./statements.ts";

const CHART_ROWS_MAX = 2_000;

const Drawing = lazy(() => {
  giveLanguage();
  return import("./chart-drawing.tsx");
});

const isNumeric = (rows: readonly ResultRow[], column: string): boolean =>
  rows.some((row) => typeof row[column] === "number") &&
  rows.every((row) => row[column] === null || typeof row[column] === "number");

const numericColumns = (rows: readonly ResultRow[]): string[] =>
  Object.keys(rows[0] ?? {}).filter((column) => isNumeric(rows.slice(0, CHART_ROWS_MAX), column));

/** Whether rows have a column of numbers to draw. */
export const isChartable = (rows: readonly ResultRow[]): boolean => numericColumns(rows).length > 0;

/** Chart of one column of numbers, by another column or by the order of the rows. */
export function ResultChart({ rows: all }: { rows: readonly ResultRow[] }) {
  const rows = useMemo(() => all.slice(0, CHART_ROWS_MAX), [all]);
  const numbers = useMemo(() => numericColumns(rows), [rows]);
  const names = Object.keys(rows[0] ?? {});
  const [asked, setAsked] = useState<{ kind: ResultChartData["kind"]; across?: string; value?: string }>({
    kind: "bars",
  });
  // A result is mostly a label and its numbers: the first column across, the last one up.
  const value = asked.value ?? numbers.at(-1) ?? "";
  const across = asked.across ?? names.find((name) => name !== value) ?? value;
  const data = useMemo(
    (): ResultChartData => ({
      kind: asked.kind,
      name: value,
      labels: rows.map((row) => String(row[across] ?? "NULL")),
      values: rows.map((row) => (typeof row[value] === "number" ? row[value] : null)),
    }),
    [asked.kind, rows, across, value],
  );
  return (
    <div className="sql-chart">
      <Group gap="xs" mb="xs">
        <SegmentedControl
          size="xs"
          aria-label="Kind of chart"
          data={[
            { value: "bars", label: "Bars" },
            { value: "line", label: "Line" },
          ]}
          value={asked.kind}
          onChange={(kind) => setAsked((before) => ({ ...before, kind: kind === "line" ? "line" : "bars" }))}
        />
        <Select
          size="xs"
          aria-label="Value"
          data={numbers}
          value={value}
          allowDeselect={false}
          onChange={(next) => setAsked((before) => ({ ...before, value: next ?? value }))}
        />
        <Text size="sm">by</Text>
        <Select
          size="xs"
          aria-label="By"
          data={names}
          value={across}
          allowDeselect={false}
          onChange={(next) => setAsked((before) => ({ ...before, across: next ?? across }))}
        />
        {all.length > rows.length ? (
          <Text size="xs" c="dimmed">
            The first {numberText(rows.length)} rows
          </Text>
        ) : null}
      </Group>
      <Suspense fallback={<Skeleton height={RESULT_CHART_HEIGHT_PX} />}>
        <Drawing data={data} label={`${value} by ${across}, ${numberText(rows.length)} rows`} />
      </Suspense>
    </div>
  );
}
