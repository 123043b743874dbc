import { Badge, Button, Code, Group, SegmentedControl, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { ConnectionBadge } from "../../parts/connection.tsx";
import { numberText, timeText } from "../../parts/format.tsx";
import { IconPlayerPause, IconPlayerPlay, IconSearch } from "../../parts/icons.tsx";
import { TimeRange, useTimeRange } from "../../parts/list/time-range.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Failure, Loading, Problem } from "../../parts/states.tsx";
import { type Level, type Line, logSocket, newerThan, useLogLines } from "./log-lines.ts";

const COLOURS: Readonly<Record<Level, string>> = { info: "blue", warn: "yellow", error: "red" };

const LEVELS: readonly Level[] = ["info", "warn", "error"];

/** Characters of a line's facts that are shown before it is expanded. */
const FACTS_CHARACTERS = 300;

/** Last lines of the server's log, newest first, followed live. */
export default function LogsPage() {
  const { state, change } = usePageState<{ level: Level; q: string }>();
  const range = useTimeRange();
  const { q = "" } = state;
  const level = LEVELS.find((one) => one === state.level) ?? "info";
  const { read, lines: present, refused } = useLogLines({ level, q, range });
  /** Lines shown while paused; null: not paused. */
  const [paused, setPaused] = useState<readonly Line[] | null>(null);
  const isPaused = paused !== null;
  const missed = paused === null ? 0 : newerThan(paused, present ?? []);
  const held = paused ?? present;
  const { from, to } = range;
  const first = from();
  const isIn = ({ at }: Line): boolean => (first === null || at >= first) && (to === null || at < to);
  const lines = held?.filter(isIn) ?? null;
  return (
    <Page title="Logs" actions={<ConnectionBadge socket={logSocket} />}>
      <Group gap="xs">
        <SegmentedControl
          aria-label="Level"
          data={[...LEVELS]}
          value={level}
          onChange={(next) => {
            setPaused(null);
            change({ level: LEVELS.find((one) => one === next) });
          }}
        />
        <TextInput
          aria-label="Search"
          placeholder="A part of a line"
          leftSection={<IconSearch size={16} aria-hidden />}
          w={280}
          defaultValue={q}
          onChange={(event) => {
            setPaused(null);
            change({ q: event.currentTarget.value || undefined }, { replace: true });
          }}
        />
        <TimeRange {...range} />
        <Button
          variant="default"
          leftSection={isPaused ? <IconPlayerPlay size={16} aria-hidden /> : <IconPlayerPause size={16} aria-hidden />}
          onClick={() => setPaused(isPaused ? null : (present ?? []))}
        >
          {isPaused ? "Resume" : "Pause"}
        </Button>
        {isPaused ? (
          <Text size="sm" c="dimmed" role="status">
            {missed === 0 ? "Nothing new" : missed === 1 ? "One new line" : `${numberText(missed)} new lines`}
          </Text>
        ) : null}
      </Group>
      <Problem of={refused} />
      {read.error === null ? null : <Failure error={read.error} onRetry={() => void read.refetch()} />}
      {lines === null ? (
        read.error === null ? (
          <Loading rows={10} />
        ) : null
      ) : lines.length === 0 ? (
        <Empty title="No lines">
          {first !== null || to !== null
            ? "No line of this time is among those that the server keeps."
            : q === ""
              ? "Nothing of this level has been logged since the start."
              : "No line since the start has these words."}
        </Empty>
      ) : (
        <Lines lines={lines} />
      )}
    </Page>
  );
}

function Lines({ lines }: { lines: readonly Line[] }) {
  /** Equal lines of one moment are numbered. */
  const seen = new Map<string, number>();
  const keyOf = (line: Line): string => {
    const text = `${line.at} ${line.message} ${JSON.stringify(line.facts)}`;
    const count = seen.get(text) ?? 0;
    seen.set(text, count + 1);
    return `${text} ${count}`;
  };
  return (
    <Table verticalSpacing={4} aria-label="Log" className="log">
      <Table.Thead>
        <Table.Tr>
          <Table.Th w={190} visibleFrom="sm">
            Time
          </Table.Th>
          <Table.Th w={80} visibleFrom="sm">
            Level
          </Table.Th>
          <Table.Th>Message</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {lines.map((line) => (
          <Table.Tr key={keyOf(line)}>
            <Table.Td className="number" visibleFrom="sm">
              {timeText(line.at)}
            </Table.Td>
            <Table.Td visibleFrom="sm">
              <LevelBadge level={line.level} />
            </Table.Td>
            <Table.Td className="log-message">
              <Group gap="xs" hiddenFrom="sm">
                <LevelBadge level={line.level} />
                <Text size="xs" c="dimmed" className="number">
                  {timeText(line.at)}
                </Text>
              </Group>
              <Text size="sm">{line.message}</Text>
              {line.facts === null ? null : <Facts text={JSON.stringify(line.facts)} />}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const LevelBadge = ({ level }: { level: Level }) => (
  <Badge size="sm" variant="light" color={COLOURS[level]}>
    {level}
  </Badge>
);

/** Facts of a line, cut until expanded: a stack trace would fill the screen. */
function Facts({ text }: { text: string }) {
  const [isWhole, setIsWhole] = useState(false);
  if (text.length <= FACTS_CHARACTERS) return <Code>{text}</Code>;
  return (
    <>
      <Code>{isWhole ? text : `${text.slice(0, FACTS_CHARACTERS)}…`}</Code>{" "}
      <Button size="compact-xs" variant="default" aria-expanded={isWhole} onClick={() => setIsWhole(!isWhole)}>
        {isWhole ? "Less" : "More"}
      </Button>
    </>
  );
}
