import { type Static, Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import { maySeeSchema, type SchemaEndpoint } from "../access/schema-right.ts";
import { requireServiceKey } from "../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { JsonText } from "../http/reply.ts";
import { forbidden, notFound, unauthorized } from "../kernel/errors.ts";
import { METRICS_CONTENT_TYPE } from "./exposition.ts";
import { PublicConfig } from "./public-config.ts";
import { SchemaDescription } from "./schema.ts";

interface SystemAnswers {
  /** Serialised once, as it never changes while the server runs. */
  schemaJson: string;
  configJson: string;
  schemaEndpoint: SchemaEndpoint;
  health(): Health;
  /** Prometheus text format. */
  metrics(): string;
}

const tag = "System";
const READ = ["system", "*", "*", "read"] as const;

const Health = Type.Object(
  {
    status: Type.Literal("ok"),
    version: Type.String(),
    uptime: Type.Integer({ description: "Seconds" }),
    drill: Type.Optional(Type.Literal(true, { description: "Present if the server was started with --drill" })),
  },
  { description: "The server is running" },
);
type Health = Static<typeof Health>;

export function systemEndpoints(answers: SystemAnswers): readonly Endpoint[] {
  const config = new JsonText(answers.configJson);
  return [
    endpoint(
      "GET /api/health",
      { tag, summary: "Check that the server is running", caller: "open", answers: { 200: Health } },
      ({ query }) => {
        query();
        return answers.health();
      },
    ),
    endpoint(
      "GET /api/config",
      { tag, summary: "Get the public configuration", caller: "open", answers: { 200: PublicConfig } },
      ({ query }) => {
        query();
        return config;
      },
    ),
    schemaEndpoint(answers),
    metricsEndpoint(answers),
  ];
}

function schemaEndpoint({ schemaEndpoint, schemaJson }: SystemAnswers): Endpoint {
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
      answers: { 200: { description: "One line per sample", schema: Type.String(), contentType: "text/plain" } },
    },
    ({ principal, query }) => {
      requireServiceKey(principal, READ);
      query();
      return new Response(metrics(), { headers: { "content-type": METRICS_CONTENT_TYPE } });
    },
  );
}

function requireSchemaRight(principal: Principal, endpoint: SchemaEndpoint): void {
  if (maySeeSchema(principal, endpoint)) return;
  throw principal.kind === "anonymous" ? unauthorized() : forbidden();
}
