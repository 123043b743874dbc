import { Badge, Text } from "@mantine/core";
import "./plan.css";

/** Row of `EXPLAIN QUERY PLAN`. */
type PlanRow = { readonly [name: string]: unknown };

interface Step {
  id: unknown;
  detail: string;
  steps: Step[];
}

/** Builds the tree of EXPLAIN QUERY PLAN rows. */
function stepsOf(rows: readonly PlanRow[], parent: unknown = 0): Step[] {
  const byParent = Map.groupBy(rows, (row) => row["parent"]);
  const below = (id: unknown): Step[] =>
    (byParent.get(id) ?? []).map((row) => ({
      id: row["id"],
      detail: String(row["detail"]),
      steps: row["id"] === id ? [] : below(row["id"]),
    }));
  return below(parent);
}

/**
 * Query plan of a statement. A scan without an index reads every row; temporary structures are built for the statement and
 * dropped.
 */
export function Plan({ rows }: { rows: readonly PlanRow[] }) {
  const steps = stepsOf(rows);
  return (
    <section aria-label="Plan" className="query-plan">
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
