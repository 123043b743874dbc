import { type AnyElysia, Elysia } from "elysia";
import type { Principal } from "../access/principal.ts";
import { requireServiceKey } from "../access/service-key-right.ts";
import type { Http, RequestContext } from "../http/http.ts";
import { JsonText } from "../http/reply.ts";
import { notFound, unauthorized } from "../kernel/errors.ts";
import { METRICS_CONTENT_TYPE } from "./exposition.ts";
import { DESCRIPTIONS } from "./operations.ts";

export type SchemaEndpoint = boolean | "authenticated";

export interface SystemRouteDeps {
  /** What the endpoints answer; it is the same as long as the process lives, so it is serialised once. */
  schemaJson: string;
  configJson: string;
  schemaEndpoint: SchemaEndpoint;
  health(): { status: "ok"; version: string; uptime: number };
  /** Prometheus text format. */
  metrics(): string;
}

/** Spec: System endpoints. */
export function createSystemRoutes(http: Http, deps: SystemRouteDeps): AnyElysia {
  const schema = new JsonText(deps.schemaJson);
  const config = new JsonText(deps.configJson);
  const { schemaEndpoint } = deps;
  return new Elysia()
    .get("/api/health", http.route(withoutQuery(deps.health), { public: true }), DESCRIPTIONS.health)
    .get(
      "/api/config",
      http.route(
        withoutQuery(() => config),
        { public: true },
      ),
      DESCRIPTIONS.config,
    )
    .get(
      "/api/schema",
      // Switched off, it is a path that does not exist: credentials are not looked at.
      schemaEndpoint === false
        ? http.route(disabled, { public: true })
        : http.route(({ principal, query }) => {
            requireSchemaRight(principal, schemaEndpoint);
            query().refuseUnknown();
            return schema;
          }),
      DESCRIPTIONS.schema,
    )
    .get(
      "/metrics",
      http.route(({ principal, query }) => {
        requireServiceKey(principal, ["system", "*", "*", "read"]);
        query().refuseUnknown();
        return new Response(deps.metrics(), { headers: { "content-type": METRICS_CONTENT_TYPE } });
      }),
      DESCRIPTIONS.metrics,
    );
}

const withoutQuery =
  (answer: () => unknown) =>
  ({ query }: RequestContext): unknown => {
    query().refuseUnknown();
    return answer();
  };

function disabled(): never {
  throw notFound("There is nothing at /api/schema");
}

/** A key with scopes has those only, also where anyone may read. Decisions 3. */
function requireSchemaRight(principal: Principal, endpoint: SchemaEndpoint): void {
  if (principal.kind === "anonymous" && endpoint === "authenticated") throw unauthorized();
  if (principal.kind === "serviceKey") requireServiceKey(principal, ["system", "*", "*", "read"]);
}
