import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { HealthChecks } from "../../../kernel/observing/health.ts";
import type { LogLines } from "../../../kernel/observing/log-lines.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { VERSION } from "../../../kernel/version.ts";
import type { PlatformConfig } from "../../config/types.ts";
import type { Sockets } from "../../sockets/index.ts";
import { PendingPlaces } from "../../sockets/pending-places.ts";
import { configEndpoint } from "./config.ts";
import { systemEndpoints } from "./endpoints.ts";
import { addChecks, addLoad, type Watched } from "./health.ts";
import { TAIL_PENDING_MAX } from "./limits.ts";
import { createTail, logEndpoints } from "./logs.ts";
import { metricsText, RequestMetrics, type ServerLoad } from "./metrics.ts";
import type { ProcessFigures } from "./processes.ts";
import { describedBy } from "./reading.ts";
import { resourcesEndpoint } from "./resources.ts";
import { describeSchema } from "./schema.ts";

export type { ServerLoad } from "./metrics.ts";

export type SystemArea = ReturnType<typeof createSystemArea>;

/** Creates the system area: health, schema, public configuration, metrics and logs. Rules: SPEC.md. */
export function createSystemArea(deps: {
  config: PlatformConfig;
  isDrill: boolean;
  clock: Clock;
  health: HealthChecks;
  logs: LogLines;
  sockets: Pick<Sockets, "serve">;
  watched: Watched;
  load: () => ServerLoad;
  /** Returns when the service key with this name was last used; null if not since the start. */
  keyUse: (name: string) => Millis | null;
  /** Returns the figures of all processes of the server. */
  processes: () => Promise<readonly ProcessFigures[]>;
}) {
  const { config, clock, isDrill, health } = deps;
  addChecks(health, clock, deps.watched);
  addLoad(health, deps.load);
  const startedAt = clock.now();
  const requests = new RequestMetrics();
  const tail = deps.sockets.serve(createTail(deps.logs));
  const places = new PendingPlaces(clock, TAIL_PENDING_MAX);
  const logs = logEndpoints({ lines: deps.logs, connections: tail, places });
  const endpoints = systemEndpoints({
    async metrics() {
      const processes = await deps.processes();
      return metricsText(requests, { load: deps.load(), processes, startedAt, now: clock.now() });
    },
    ...describedBy(config),
    async health() {
      const { status, checks } = await health.report();
      return {
        status,
        checks,
        processes: await deps.processes(),
        version: VERSION,
        uptime: Math.floor((clock.now() - startedAt) / SECOND_MS),
        drill: isDrill,
      };
    },
  });
  return {
    endpoints: [...endpoints, resourcesEndpoint({ config, keyUse: deps.keyUse }), configEndpoint(config), ...logs],
    /** Describes the declared tables, for callers whose right to see them is checked. */
    schema: () => describeSchema(config.databases ?? {}),
    /** Counts each answer for the metrics. */
    onAnswer: requests.record,
    /** Closes the connections that follow the log. */
    stop: (): void => tail.stop(),
  };
}
