import { type Static, Type } from "typebox";
import { nullable } from "../../../../kernel/schema/types.ts";
import { SlowRequest } from "../model.ts";

const Milliseconds = Type.Number({ minimum: 0, description: "Milliseconds" });
const At = Type.Number({ minimum: 0, description: "Milliseconds from the start of the request" });

/** A step of a query plan. `parent`: the `id` of the step that it belongs to; 0: none. */
const PlanStep = Type.Object({ id: Type.Integer(), parent: Type.Integer(), detail: Type.String() });
export type PlanStep = Static<typeof PlanStep>;

const Plan = nullable(Type.Array(PlanStep, { description: "Of `EXPLAIN QUERY PLAN`; null: there is none" }));
const Place = Type.String({ description: "The database file: `db/shared`, `system`" });
const Sql = Type.String({ description: "Without values and comments; texts in it are `'…'`" });
const Index = nullable(
  Type.Object(
    { namespace: Type.String(), table: Type.String(), fields: Type.Array(Type.String()) },
    { description: "An index with which SQLite would go about it without reading every record; null: there is none" },
  ),
);
export type ProposedIndex = NonNullable<Static<typeof Index>>;

const Query = Type.Object({
  kind: Type.Enum(["query"]),
  at: At,
  ms: Milliseconds,
  place: Place,
  sql: Sql,
  plan: Plan,
  index: Index,
  isElsewhere: Type.Boolean({ description: "Whether it ran in another process" }),
});
const Call = Type.Object({
  kind: Type.Enum(["rule", "hook"]),
  at: At,
  ms: Milliseconds,
  name: Type.String({ description: "`shared.posts read`, `bucket avatars write`, `route /report`" }),
  said: Type.Enum(["allows", "denies", "filters", "asks", "fails", "runs"], {
    description: "What a rule has said; `asks`: it has to see the record first. `runs`: a hook",
  }),
  times: Type.Integer({ minimum: 1, description: "How often it was called in a row" }),
});
const Write = Type.Object({
  kind: Type.Enum(["write"]),
  at: At,
  place: Place,
  changes: Type.Array(
    Type.Object({ table: Type.String(), id: Type.String(), action: Type.Enum(["insert", "update", "delete"]) }),
    { description: "At most 20" },
  ),
  count: Type.Integer({ description: "All records that it has changed" }),
});
const Job = Type.Object({ name: Type.String(), id: Type.String() });
export type EnqueuedJob = Static<typeof Job>;

const Step = Type.Union([Query, Call, Write, Type.Object({ kind: Type.Enum(["job"]), at: At, ...Job.properties })]);
export type StoryStep = Static<typeof Step>;

const Story = Type.Object(
  {
    ...SlowRequest.properties,
    steps: Type.Array(Step, { description: "In the order in which they ended" }),
    further: Type.Integer({ description: "Steps that are not listed" }),
  },
  { description: "null: its story is not kept" },
);
export type Story = Static<typeof Story>;

export const KeptStory = Type.Object(
  {
    request: nullable(Story),
    jobs: Type.Array(Job, { description: "Jobs that it has enqueued, also where its story is not kept" }),
  },
  { description: "What is kept of the request" },
);

export const KeptRequests = Type.Object(
  {
    requests: Type.Array(SlowRequest),
    keeps: Type.Enum(["all", "slow and failed"], { description: "Of which requests the stories are kept" }),
  },
  { description: "The newest first" },
);

const SlowQuery = Type.Object({
  place: Place,
  sql: Sql,
  times: Type.Integer({ description: "How often it was slow" }),
  ms: Type.Number({ minimum: 0, description: "Milliseconds of all of them" }),
  slowestMs: Milliseconds,
  lastAt: Type.String({ format: "date-time" }),
  plan: Plan,
  index: Index,
  requests: Type.Array(Type.String(), { description: "Ids of the last requests with it, at most 5" }),
});
export type SlowQuery = Static<typeof SlowQuery>;

export const SlowQueries = Type.Object(
  { queries: Type.Array(SlowQuery) },
  { description: "Those that took longest in total first" },
);
