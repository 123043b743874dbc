import { Type } from "typebox";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { chain } from "../../../kernel/maybe-promise.ts";
import { nullable, optional } from "../../../kernel/schema/types.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { JsonText, OK } from "../../http/reply.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../limits.ts";
import type { JobsService } from "./service.ts";

const TAG = "Jobs";
const Ok = Type.Object({ ok: Type.Literal(true) });
const Time = Type.String({ format: "date-time" });
const State = Type.Union([
  Type.Literal("waiting"),
  Type.Literal("running"),
  Type.Literal("done"),
  Type.Literal("failed"),
]);
const Answer = Type.Object(
  {
    status: Type.Integer(),
    contentType: nullable(Type.String()),
    body: Type.String({ description: "Its beginning" }),
    isCut: Type.Boolean({ description: "There was more of the body" }),
  },
  { description: "What the receiver of a webhook answered to the latest try that had an answer" },
);
const JobRecord = Type.Object({
  id: Type.String(),
  name: Type.String(),
  state: State,
  waitingFor: nullable(Type.Literal("drill", { description: "The server is a drill, in which no job runs" })),
  attempt: Type.Integer({ description: "The tries that have begun" }),
  data: Type.Unknown(),
  error: nullable(Type.String({ description: "Of the latest try that failed" })),
  answer: nullable(Answer),
  createdAt: Time,
  dueAt: Time,
  startedAt: nullable(Time),
  finishedAt: nullable(Time),
});

const Schedule = Type.Object({
  name: Type.String({ description: "The name of its jobs" }),
  schedule: Type.String(),
  timezone: Type.String(),
  next: Type.Array(Time, { description: "The next 5 runs; none in a drill" }),
  lastAt: nullable(Type.String({ format: "date-time", description: "The last time of the schedule that came" })),
});

/** The parsed body is JSON: what `Type.Unknown` admits of a request. */
type DataBody = () => Promise<{ data?: JsonValue }>;

export function jobEndpoints(service: JobsService): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/admin/jobs",
    {
      tag: TAG,
      summary: "List jobs, newest first",
      description:
        "A key sees the jobs that its scopes `jobs:*:NAME:read` name. A page ends early when its data is large.",
      caller: "serviceKey",
      place: "core",
      query: {
        name: Type.Optional(Type.String({ description: "Only jobs of this name" })),
        state: Type.Optional(State),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, default: LIST_LIMIT_DEFAULT, description: `More counts as ${LIST_LIMIT_MAX}` }),
        ),
        cursor: Type.Optional(Type.String()),
      },
      answers: { 200: Type.Object({ jobs: Type.Array(JobRecord), cursor: nullable(Type.String()) }) },
      errors: [400],
    },
    ({ principal, query }) => chain(service.list(principal, query), (text) => new JsonText(text)),
  );
  const schedules = endpoint(
    "GET /api/admin/schedules",
    {
      tag: TAG,
      summary: "List schedules with their next runs",
      description: "Those of `cron`, and of scheduled backups. A key sees those whose jobs it may read.",
      caller: "serviceKey",
      place: "core",
      answers: { 200: Type.Object({ schedules: Type.Array(Schedule) }) },
    },
    ({ principal, query }) => {
      const found = service.schedules(principal);
      query();
      return {
        schedules: found.map(({ next, last, ...schedule }) => ({
          ...schedule,
          next: next.map(isoTime),
          lastAt: last === null ? null : isoTime(last),
        })),
      };
    },
  );
  const run = endpoint(
    "POST /api/admin/schedules/:name/run",
    {
      tag: TAG,
      summary: "Run a schedule now",
      description:
        "Beside its times, which stay as they are. While a run of the schedule waits or runs, its id is answered, and no other is made.",
      caller: "serviceKey",
      place: "core",
      path: { name: "The name of the schedule's jobs" },
      answers: { 200: Type.Object({ id: Type.String({ description: "The id of the job" }) }) },
      errors: [404],
    },
    async ({ principal, params, query }) => ({ id: await service.runSchedule(principal, params.name, query) }),
  );
  const again = endpoint(
    "POST /api/admin/jobs/:id/run-again",
    {
      tag: TAG,
      summary: "Run a job of the config again, with other data",
      description:
        "Adds a new job of the same name, whatever the state of this one, which stays as it is. `data` is checked as by " +
        "`app.jobs.enqueue`. 409 for the server's own jobs.",
      caller: "serviceKey",
      place: "core",
      path: { id: "The id of a job" },
      body: Type.Object({ data: optional(Type.Unknown({ description: "The data of the new job; null by default" })) }),
      answers: { 200: Type.Object({ id: Type.String({ description: "The id of the new job" }) }) },
      errors: [404, 409],
    },
    async ({ principal, params, body }) => ({ id: await service.runAgain(principal, params.id, body as DataBody) }),
  );
  return [list, schedules, run, again, ...changes(service)];
}

const CHANGES = [
  {
    action: "retry",
    summary: "Run a failed job again",
    description: "It has all of its tries again. 409 for a job that has not failed.",
  },
  {
    action: "cancel",
    summary: "Cancel a job",
    description: "Its state becomes `failed`. The signal of a running job is aborted, and it is not tried again.",
  },
  {
    action: "run-now",
    summary: "Run a waiting job now",
    description: "A job behind others of its group still runs after them.",
  },
] as const;

const changes = (service: JobsService): Endpoint[] =>
  CHANGES.map(({ action, summary, description }) =>
    endpoint(
      `POST /api/admin/jobs/:id/${action}`,
      {
        tag: TAG,
        summary,
        description,
        caller: "serviceKey",
        place: "core",
        path: { id: "The id of a job" },
        answers: { 200: Ok },
        errors: [404, 409],
      },
      ({ principal, params, query }) => service.change(principal, params.id, action, query).then(() => OK),
    ),
  );
