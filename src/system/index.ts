import type { PlatformConfig } from "../config/types.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { AnswerListener } from "../http/http.ts";
import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/time/duration.ts";
import { VERSION } from "../kernel/version.ts";
import { systemEndpoints } from "./endpoints.ts";
import { createMetrics, type ServerLoad } from "./metrics.ts";
import { describePublicConfig } from "./public-config.ts";
import { describeSchema } from "./schema.ts";

export type { ServerLoad } from "./metrics.ts";

export interface SystemArea {
  readonly endpoints: readonly Endpoint[];
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
  const endpoints = systemEndpoints({
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
  });
  return { endpoints, onAnswer: metrics.record };
}
