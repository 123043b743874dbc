import { type TProperties, Type } from "typebox";
import { forbidden, notFound, unauthorized } from "../../../kernel/errors.ts";
import type { HealthReport } from "../../../kernel/observing/health.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import type { Principal } from "../../access/principal.ts";
import { maySeeSchema, requireServiceKey, type SchemaEndpoint } from "../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { JsonText, SilentReply } from "../../http/reply.ts";
import { PublicConfig } from "./config.ts";
import { METRICS_CONTENT_TYPE } from "./metrics.ts";
import type { ProcessFigures } from "./processes.ts";
import { SchemaDescription } from "./schema.ts";

interface SystemAnswers {
  /** JSON of the schema. Like `configJson`, it never changes while the server runs. */
  schemaJson: string;
  configJson: string;
  schemaEndpoint: SchemaEndpoint;
  health(): Promise<Health>;
  /** Returns the metrics in the Prometheus text format. */
  metrics(): Promise<string>;
}

const tag = "System";
const READ = ["system", "*", "*", "read"] as const;

const Status = Type.Enum(["ok", "degraded", "unavailable"], {
  description: "`degraded`: a check is not ok; `unavailable`: one without which the server cannot serve",
});
const Health = Type.Object(
  {
    status: Status,
    version: Type.String(),
    uptime: Type.Integer({ description: "Seconds" }),
    drill: Type.Optional(Type.Literal(true, { description: "Present if the server was started with --drill" })),
  },
  { description: "The server is running" },
);

const figures = (named: TProperties) => Type.Object({ ok: Type.Boolean(), ...named }, { additionalProperties: true });
const Time = nullable(Type.String({ format: "date-time" }));
const FullHealth = Type.Object(
  {
    status: Status,
    checks: Type.Object(
      {
        disk: figures({ freeBytes: Type.Integer() }),
        sync: figures({ lastAt: Time, lastMs: nullable(Type.Number()) }),
        files: figures({ count: Type.Integer(), bytes: Type.Integer(), walBytes: Type.Integer() }),
        backup: figures({ lastAt: Time, verifiedAt: Time }),
        continuous: Type.Optional(
          figures({
            lagMs: Type.Integer({
              description: "Age of the oldest commit or content that is not in the store; 0: all are",
            }),
            lagBytes: Type.Integer(),
            lastAt: Time,
            verifiedAt: Time,
            verified: nullable(
              Type.Boolean({ description: "Whether the last verification succeeded; null: there was none" }),
            ),
            uploads: Type.Integer(),
            failures: Type.Integer(),
            message: nullable(Type.String()),
          }),
        ),
        jobs: figures({ waiting: Type.Integer(), failed: Type.Integer() }),
        sockets: figures({ realtime: Type.Integer(), rooms: Type.Integer() }),
        memory: figures({ residentBytes: Type.Integer() }),
        processes: Type.Array(
          Type.Object({
            pid: Type.Integer(),
            role: Type.Enum(["main", "worker"]),
            requests: Type.Integer({ description: "Answered by this process since its start" }),
            memory: Type.Integer({ description: "Resident bytes" }),
            loopMs: Type.Number({ description: "The last measured delay of its event loop" }),
          }),
        ),
      },
      { additionalProperties: true, description: "By name; further areas add theirs, such as `certificate`" },
    ),
    version: Type.String(),
    uptime: Type.Integer({ description: "Seconds" }),
    drill: Type.Boolean(),
  },
  { description: "With `full`" },
);
/** Health report of `GET /api/health`, with version and uptime. */
export interface Health extends HealthReport {
  processes: readonly ProcessFigures[];
  version: string;
  uptime: number;
  drill: boolean;
}

export function systemEndpoints(answers: SystemAnswers): readonly Endpoint[] {
  return [healthEndpoint(answers), ...describingEndpoints(answers), metricsEndpoint(answers)];
}

/** Returns the endpoints whose answers the config decides alone. */
export function describingEndpoints(
  answers: Pick<SystemAnswers, "configJson" | "schemaJson" | "schemaEndpoint">,
): readonly Endpoint[] {
  const config = new JsonText(answers.configJson);
  return [
    endpoint(
      "GET /api/config",
      { tag, summary: "Get the public configuration", caller: "open", place: "none", answers: { 200: PublicConfig } },
      ({ query }) => {
        query();
        return config;
      },
    ),
    schemaEndpoint(answers),
  ];
}

/** Creates the endpoint of the health, which each node of a cluster answers itself. */
export function healthEndpoint({ health }: Pick<SystemAnswers, "health">): Endpoint {
  return endpoint(
    "GET /api/health",
    {
      tag,
      summary: "Check that the server is running",
      description:
        "503 while a database file refuses writes, the disk has less than 64 MiB left, or the server stops. `full` adds " +
        "the checks, for a service key with `system:*:*:read`; without `full`, credentials are not looked at.",
      caller: "open",
      place: "none",
      credentialsWith: "full",
      errors: [400, 401, 403],
      query: {
        full: Type.Optional(Type.Enum(["", "true", "1"], { description: "Present: with the checks" })),
      },
      answers: { 200: Type.Union([Health, FullHealth], { description: "The server serves" }), 503: Health },
    },
    async ({ principal, peek, query }) => {
      const isFull = peek("full") !== null;
      if (isFull) requireServiceKey(principal, READ);
      query();
      const { status, checks, processes, version, uptime, drill } = await health();
      const body = isFull
        ? { status, checks: { ...checks, processes }, version, uptime, drill }
        : { status, version, uptime, ...(drill ? { drill } : {}) };
      return status === "unavailable" ? new SilentReply(503, body) : body;
    },
  );
}

function schemaEndpoint({
  schemaEndpoint,
  schemaJson,
}: Pick<SystemAnswers, "schemaEndpoint" | "schemaJson">): Endpoint {
  const schema = new JsonText(schemaJson);
  return endpoint(
    "GET /api/schema",
    {
      tag,
      summary: "Get the declared tables with their fields and constraints",
      description:
        "`api.schemaEndpoint` decides who may read it: false (404), true (everyone) or `authenticated` (a token or a service key).",
      // If disabled, it is 404 like any unknown path, without a check of credentials. [SY3]
      caller: schemaEndpoint === false ? "open" : "rules",
      place: "none",
      answers: { 200: SchemaDescription },
      errors: [404],
    },
    ({ principal, query }) => {
      if (schemaEndpoint === false) throw notFound("There is nothing at /api/schema");
      requireSchemaRight(principal, schemaEndpoint);
      query();
      return schema;
    },
  );
}

function metricsEndpoint({ metrics }: SystemAnswers): Endpoint {
  return endpoint(
    "GET /metrics",
    {
      tag,
      summary: "Get metrics for Prometheus",
      description: "Requests, latency, files, queues, sockets, rooms and memory in text format 0.0.4.",
      caller: "serviceKey",
      place: "none",
      answers: { 200: { description: "One line per sample", schema: Type.String(), contentType: "text/plain" } },
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, READ);
      query();
      return new Response(await metrics(), { headers: { "content-type": METRICS_CONTENT_TYPE } });
    },
  );
}

function requireSchemaRight(principal: Principal, endpoint: SchemaEndpoint): void {
  if (maySeeSchema(principal, endpoint)) return;
  throw principal.kind === "anonymous" ? unauthorized() : forbidden();
}
