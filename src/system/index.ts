import type { AnyElysia } from "elysia";
import type { PlatformConfig } from "../config/types.ts";
import type { AnswerListener, Http } from "../http/http.ts";
import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { VERSION } from "../kernel/version.ts";
import { createMetrics, type ServerLoad } from "./metrics.ts";
import { describePublicConfig } from "./public-config.ts";
import { createSystemRoutes } from "./routes.ts";
import { describeSchema } from "./schema.ts";

export type { ServerLoad } from "./metrics.ts";

export interface SystemArea {
  routes(http: Http): AnyElysia;
  /** Counts each answer for the metrics. */
  readonly onAnswer: AnswerListener;
}

/** Health, schema, public configuration and metrics. The rules are in SPEC.md. */
export function createSystemArea(deps: {
  config: PlatformConfig;
  isDrill: boolean;
  clock: Clock;
  load: () => ServerLoad;
}): SystemArea {
  const { config, clock, isDrill } = deps;
  const startedAt = clock.now();
  const metrics = createMetrics({ clock, startedAt, load: deps.load });
  const answers = {
    metrics: metrics.text,
    schemaJson: JSON.stringify(describeSchema(config.databases ?? {})),
    configJson: JSON.stringify(describePublicConfig(config)),
    schemaEndpoint: config.api?.schemaEndpoint ?? false,
    health: () => ({
      status: "ok" as const,
      version: VERSION,
      uptime: Math.floor((clock.now() - startedAt) / SECOND_MS),
      ...(isDrill ? { drill: true } : {}),
    }),
  };
  return { routes: (http) => createSystemRoutes(http, answers), onAnswer: metrics.record };
}
