import { Badge, Text } from "@mantine/core";
import type { ResultRow } from "./statements.ts";

interface Step {
  id: unknown;
  detail: string;
  steps: Step[];
}

/** The rows of EXPLAIN QUERY PLAN as the tree that they are. */
function stepsOf(rows: readonly ResultRow[], parent: unknown = 0): Step[] {
  const byParent = Map.groupBy(rows, (row) => row["parent"]);
  const below = (id: unknown): Step[] =>
    (byParent.get(id) ?? []).map((row) => ({
      id: row["id"],
      detail: String(row["detail"]),
      steps: row["id"] === id ? [] : below(row["id"]),
    }));
  return below(parent);
}

/** How SQLite goes about a statement. A scan without an index looks at every row; what is temporary is built for this statement and dropped. */
export function Plan({ rows }: { rows: readonly ResultRow[] }) {
  const steps = stepsOf(rows);
  return (
    <section aria-label="Plan" className="sql-plan">
      {steps.length === 0 ? (
        <Text size="sm">SQLite has nothing to plan for this statement.</Text>
      ) : (
        <Steps steps={steps} />
      )}
    </section>
  );
}

function Steps({ steps }: { steps: readonly Step[] }) {
  return (
    <ul>
      {steps.map((step) => (
        <li key={String(step.id)}>
          <Text size="sm" ff="monospace" span>
            {step.detail}
          </Text>{" "}
          <StepBadge detail={step.detail} />
          {step.steps.length === 0 ? null : <Steps steps={step.steps} />}
        </li>
      ))}
    </ul>
  );
}

function StepBadge({ detail }: { detail: string }) {
  const isScan = detail.startsWith("SCAN") && !/USING (?:COVERING )?INDEX|CONSTANT ROW|VIRTUAL TABLE/.test(detail);
  const isMade = /USE TEMP B-TREE|AUTOMATIC/.test(detail);
  if (!isScan && !isMade) return null;
  return (
    <Badge size="sm" variant="light" color={isScan ? "orange" : "yellow"}>
      {isScan ? "every row" : "temporary"}
    </Badge>
  );
}
