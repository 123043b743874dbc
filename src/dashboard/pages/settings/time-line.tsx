import { Group, Stack, Text } from "@mantine/core";
import type { BackupHistory } from "../../../client/admin/index.ts";
import { agoText, bytesText, numberText, timeText } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";

/** Least share of the line that a gap takes, so that one of a second can be seen. */
const GAP_MIN_PERCENT = 0.4;
const TICKS_MAX = 60;

const REASONS: Readonly<Record<BackupHistory["gaps"][number]["reason"], string>> = {
  full: "nothing was captured for lack of room",
  store_ahead: "the place had more than the file",
  replaced: "another server had stored",
  unread: "commits were not read, as after a kill",
};

/** Line of time with the moments that can be restored, gaps, and full copies; the gaps in words below it. */
export function TimeLine({ label, history }: { label: string; history: BackupHistory }) {
  const { spans, gaps, copies } = history;
  const [first, last] = [spans[0], spans.at(-1)];
  if (first === undefined || last === undefined) return null;
  const from = Date.parse(first.from);
  const to = Math.max(Date.parse(last.to), from + 1);
  const at = (time: string): number => Math.min(100, Math.max(0, ((Date.parse(time) - from) / (to - from)) * 100));
  const shownCopies = copies.filter((copy) => Date.parse(copy.at) >= from).slice(-TICKS_MAX);
  const gapCount = gaps.length === 0 ? "no gap" : gaps.length === 1 ? "one gap" : `${gaps.length} gaps`;
  return (
    <Stack gap={4}>
      <svg
        className="time-line"
        role="img"
        aria-label={`${label}: from ${timeText(from)} to ${timeText(to)}, ${gapCount}`}
        viewBox="0 0 100 10"
        preserveAspectRatio="none"
      >
        <rect className="time-line-ground" x={0} y={2} width={100} height={6} />
        {spans.map((span) => (
          <rect
            key={span.from}
            className="time-line-span"
            x={at(span.from)}
            y={2}
            width={Math.max(GAP_MIN_PERCENT, at(span.to) - at(span.from))}
            height={6}
          />
        ))}
        {gaps.map((gap) => (
          <rect
            key={`${gap.file} ${gap.from}`}
            className="time-line-gap"
            x={Math.min(at(gap.from), 100 - GAP_MIN_PERCENT)}
            y={2}
            width={Math.max(GAP_MIN_PERCENT, at(gap.to) - at(gap.from))}
            height={6}
          />
        ))}
        {shownCopies.map((copy) => (
          <line
            key={copy.at}
            className="time-line-copy"
            x1={at(copy.at)}
            x2={at(copy.at)}
            y1={0}
            y2={10}
            vectorEffect="non-scaling-stroke"
          />
        ))}
      </svg>
      <Group justify="space-between" gap="xs">
        <Text size="xs" c="dimmed" title={agoText(from)}>
          {timeText(from)}
        </Text>
        <Text size="xs" c="dimmed" title={agoText(to)}>
          {timeText(to)}
        </Text>
      </Group>
      <Legend history={history} />
      {gaps.length === 0 ? null : <Gaps gaps={gaps} />}
    </Stack>
  );
}

function Legend({ history: { copies, gaps, files, bytes } }: { history: BackupHistory }) {
  const marks = [
    { name: "can be restored", mark: "span" },
    ...(copies.length > 0 ? [{ name: "full copies", mark: "copy" }] : []),
    ...(gaps.length > 0 ? [{ name: "missing", mark: "gap" }] : []),
  ];
  return (
    <Group gap="md" component="ul" className="legend">
      {marks.map(({ name, mark }) => (
        <Group key={mark} gap={6} component="li" wrap="nowrap">
          <svg width={10} height={10} aria-hidden="true" className={`time-line-${mark}`}>
            {mark === "copy" ? <line x1={5} x2={5} y1={0} y2={10} /> : <rect width={10} height={10} />}
          </svg>
          <Text size="sm" c="dimmed">
            {name}
          </Text>
        </Group>
      ))}
      <Text size="sm" c="dimmed" component="li" className="number">
        {numberText(files)} {files === 1 ? "database" : "databases"}, {bytesText(bytes)}
      </Text>
    </Group>
  );
}

function Gaps({ gaps }: Pick<BackupHistory, "gaps">) {
  return (
    <DataTable
      label="Gaps"
      minWidth={560}
      items={gaps.toReversed()}
      keyOf={({ file, from }) => `${file} ${from}`}
      columns={[
        { title: "Missing from", show: ({ from }) => timeText(from) },
        { title: "To", show: ({ to }) => timeText(to) },
        { title: "Database", font: "monospace", show: ({ file }) => file },
        { title: "Reason", show: ({ reason }) => REASONS[reason] },
      ]}
    />
  );
}
