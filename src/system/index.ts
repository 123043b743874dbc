import type { AnyElysia } from "elysia";
import type { PlatformConfig } from "../config/types.ts";
import type { Http } from "../http/http.ts";
import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { VERSION } from "../kernel/version.ts";
import { describePublicConfig } from "./public-config.ts";
import { createSystemRoutes } from "./routes.ts";
import { describeSchema } from "./schema.ts";

export interface SystemArea {
  routes(http: Http): AnyElysia;
}

/** Health, schema, public configuration. Spec: System endpoints; decisions 11; rules: SPEC.md. */
export function createSystemArea(deps: { config: PlatformConfig; clock: Clock }): SystemArea {
  const { config, clock } = deps;
  const startedAt = clock.now();
  const answers = {
    schemaJson: JSON.stringify(describeSchema(config.databases ?? {})),
    configJson: JSON.stringify(describePublicConfig(config)),
    schemaEndpoint: config.api?.schemaEndpoint ?? false,
    health: () => ({
      status: "ok" as const,
      version: VERSION,
      uptime: Math.floor((clock.now() - startedAt) / SECOND_MS),
    }),
  };
  return { routes: (http) => createSystemRoutes(http, answers) };
}
