import type { SlowRequest } from "../../../../client/admin/index.ts";

/** Index that would help a statement. */
export interface ProposedIndex {
  namespace: string;
  table: string;
  fields: string[];
}

type PlanRow = { id: number; parent: number; detail: string };

export interface QueryStep {
  kind: "query";
  at: number;
  ms: number;
  place: string;
  sql: string;
  plan: PlanRow[] | null;
  index: ProposedIndex | null;
  isElsewhere: boolean;
}

/** Step of a request, as `GET /api/admin/requests/:id` answers it. */
export type Step =
  | QueryStep
  | { kind: "rule" | "hook"; at: number; ms: number; name: string; said: string; times: number }
  | {
      kind: "write";
      at: number;
      place: string;
      changes: { table: string; id: string; action: "insert" | "update" | "delete" }[];
      count: number;
    }
  | { kind: "job"; at: number; name: string; id: string };

export interface Story extends SlowRequest {
  steps: Step[];
  further: number;
}

export interface KeptStory {
  request: Story | null;
  jobs: { name: string; id: string }[];
}

/** Slow statement, as `GET /api/admin/slow-queries` answers it. */
export interface SlowQuery {
  place: string;
  sql: string;
  times: number;
  ms: number;
  slowestMs: number;
  lastAt: string;
  plan: PlanRow[] | null;
  index: ProposedIndex | null;
  requests: string[];
}
