import { Card, Group, Skeleton, Table, Text, Title } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import type { RequestPoint } from "../../../client/admin/index.ts";
import { millisText, numberText, timeText } from "../format.tsx";
import { Wide } from "../list/list.tsx";
import { CHART_HEIGHT_PX, type ChartData, colourOf } from "./data.ts";
import { giveLanguage } from "./language.ts";

/** Bound of the rows in a chart's table. */
const CHART_TABLE_ROWS_MAX = 120;

const Drawing = lazy(() => {
  giveLanguage();
  return import("./drawing.tsx");
});

/**
 * Line chart of series over the same times, with their latest values or those under the pointer. The numbers are available as a
 * table too.
 */
export function Chart({ data, hint }: { data: ChartData; hint?: string }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const { title, times, series, format } = data;
  const shown = pointed ?? times.length - 1;
  const time = times[shown];
  return (
    <Card withBorder component="section" aria-label={title} p="sm">
      <Group justify="space-between" gap={4}>
        <Title order={2} size="h5">
          {title}
        </Title>
        <Text size="xs" c="dimmed" className="number">
          {pointed === null || time === undefined ? hint : timeText(time)}
        </Text>
      </Group>
      <Group gap="md" my={4} component="ul" className="legend">
        {series.map(({ name, values, colour }) => (
          <Group key={name} gap={6} component="li" wrap="nowrap">
            <svg width={10} height={10} aria-hidden="true">
              <circle cx={5} cy={5} r={5} fill={colourOf(colour)} />
            </svg>
            <Text size="sm" c="dimmed">
              {name}
            </Text>
            <Text size="sm" fw={600} className="number">
              {textOf(values[shown], format)}
            </Text>
          </Group>
        ))}
      </Group>
      <Suspense fallback={<Skeleton height={CHART_HEIGHT_PX} />}>
        <Drawing data={data} onPoint={setPointed} />
      </Suspense>
      <Numbers data={data} />
    </Card>
  );
}

const textOf = (value: number | null | undefined, format: ChartData["format"]): string =>
  value === null || value === undefined ? "–" : format(value);

/** Table of the numbers, newest first. */
function Numbers({ data: { title, times, series, format } }: { data: ChartData }) {
  const [isOpen, setIsOpen] = useState(false);
  const last = times.length - 1;
  const shown = Math.min(times.length, CHART_TABLE_ROWS_MAX);
  return (
    <details className="numbers" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>Numbers</summary>
      {isOpen ? (
        <Wide minWidth={320}>
          <Table verticalSpacing={2} aria-label={title}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Time</Table.Th>
                {series.map(({ name }) => (
                  <Table.Th key={name} ta="right">
                    {name}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {times.slice(times.length - shown).map((_, index) => {
                const at = last - index;
                return (
                  <Table.Tr key={times[at]}>
                    <Table.Td className="number">{timeText(times[at] ?? 0)}</Table.Td>
                    {series.map(({ name, values }) => (
                      <Table.Td key={name} ta="right" className="number">
                        {textOf(values[at], format)}
                      </Table.Td>
                    ))}
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </Wide>
      ) : null}
    </details>
  );
}

interface RequestChart {
  points: readonly RequestPoint[];
  /** Time range and step of the chart. */
  hint: string;
}

const timesOf = (points: readonly RequestPoint[]): number[] => points.map(({ timestamp }) => timestamp);

/** Chart of successful, refused and failed requests. */
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

/** Chart of response times. A step without requests has no value. */
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
