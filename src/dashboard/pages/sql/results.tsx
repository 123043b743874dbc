import { Alert, Badge, Button, Group, SegmentedControl, Stack, Tabs, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Plan } from "../../parts/code/plan.tsx";
import { download } from "../../parts/download.ts";
import { millisText, numberText } from "../../parts/format.tsx";
import { IconDownload } from "../../parts/icons.tsx";
import { Empty, Failure } from "../../parts/states.tsx";
import { isChartable, ResultChart } from "./chart.tsx";
import { ResultGrid } from "./result-grid.tsx";
import type { Outcome, ResultRow, Runs } from "./statements.ts";

const TAB_CHARACTERS = 28;

/** `3 rows`, `one row` */
const counted = (count: number, one: string): string => (count === 1 ? `One ${one}` : `${numberText(count)} ${one}s`);

/** Outcomes of the statements: one directly, several in tabs. */
export function Results({ runs }: { runs: Runs }) {
  const { outcomes, total, cancel, chosen, choose } = runs;
  if (outcomes.length === 0 && cancel !== null) {
    return (
      <Text size="sm" c="dimmed" role="status">
        Running …
      </Text>
    );
  }
  if (outcomes.length === 0) {
    return <Empty title="No results yet">Write a statement, or take one from the history, and run it.</Empty>;
  }
  const [only] = outcomes;
  if (total === 1 && only !== undefined) return <Result outcome={only} note={null} />;
  const failed = outcomes.findIndex(({ kind }) => kind === "failed");
  const note =
    failed === -1
      ? null
      : "What earlier statements wrote stays: each is a transaction of its own. Later ones were not run.";
  return (
    <Tabs
      value={String(chosen)}
      onChange={(next) => choose(Number(next ?? 0))}
      className="sql-results"
      keepMounted={false}
    >
      <Tabs.List className="sql-tabs">
        {outcomes.map(({ statement, kind }, index) => (
          <Tabs.Tab key={statement.from} value={String(index)} {...(kind === "failed" ? { color: "red" } : {})}>
            <Text size="xs" ff="monospace" span {...(kind === "failed" ? { c: "var(--mantine-color-error)" } : {})}>
              {index + 1}. {oneLine(statement.text)}
            </Text>
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {outcomes.map((outcome, index) => (
        <Tabs.Panel key={outcome.statement.from} value={String(index)} className="sql-panel">
          <Result outcome={outcome} note={note} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > TAB_CHARACTERS ? `${line.slice(0, TAB_CHARACTERS)}…` : line;
};

/** Saves rows as a file. */
async function save(rows: readonly ResultRow[]): Promise<void> {
  const { csvOf } = await import("./csv.ts");
  download(csvOf(rows), "result.csv");
}

function Result({ outcome, note }: { outcome: Outcome; note: string | null }): ReactNode {
  const [view, setView] = useState("rows");
  if (outcome.kind === "failed") {
    return (
      <Stack gap="xs" pt="xs">
        <Failure error={outcome.error} />
        {note === null ? null : <Text size="sm">{note}</Text>}
      </Stack>
    );
  }
  if (outcome.kind === "plan") return <Plan rows={outcome.rows} />;
  const { statement, rows, changes, durationMs } = outcome;
  const isWrite = statement.kind === "write";
  return (
    <>
      <Group gap="xs" py={6}>
        {isWrite ? <WriteBadge>Write</WriteBadge> : null}
        <Text size="sm" className="number" role="status">
          {isWrite && rows.length === 0 ? `${counted(changes, "row")} changed` : counted(rows.length, "row")}
          {isWrite && rows.length > 0 ? `, ${numberText(changes)} changed` : ""} in {millisText(durationMs)}
        </Text>
        {rows.length === 0 ? null : (
          <>
            {isChartable(rows) ? (
              <SegmentedControl
                size="xs"
                aria-label="Show the result as"
                data={[
                  { value: "rows", label: "Rows" },
                  { value: "chart", label: "Chart" },
                ]}
                value={view}
                onChange={setView}
              />
            ) : null}
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<IconDownload size={14} aria-hidden />}
              onClick={() => void save(rows)}
            >
              CSV
            </Button>
          </>
        )}
      </Group>
      {rows.length > 0 ? (
        view === "chart" ? (
          <ResultChart rows={rows} />
        ) : (
          <ResultGrid name="Result" rows={rows} />
        )
      ) : isWrite ? null : (
        <Alert variant="light" color="gray">
          The statement ran, and no row is what it asks for.
        </Alert>
      )}
    </>
  );
}

export function WriteBadge({ children }: { children: ReactNode }) {
  return (
    <Badge color="orange" variant="light" radius="sm">
      {children}
    </Badge>
  );
}
