import { type AnyElysia, Elysia } from "elysia";
import { Type } from "typebox";
import type { PlatformConfig } from "../config/types.ts";
import type { Http } from "../http/http.ts";
import { operation } from "../http/operation.ts";
import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { VERSION } from "../kernel/version.ts";

export interface SystemArea {
  routes(http: Http): AnyElysia;
}

/** Health. Spec: System endpoints; decisions 11. */
export function createSystemArea(deps: { config: PlatformConfig; clock: Clock }): SystemArea {
  const startedAt = deps.clock.now();
  return {
    routes: (http) =>
      new Elysia().get(
        "/api/health",
        http.route(
          () => ({ status: "ok", version: VERSION, uptime: Math.floor((deps.clock.now() - startedAt) / SECOND_MS) }),
          { public: true },
        ),
        operation({
          tag: "System",
          summary: "Whether the server answers",
          security: "public",
          answers: {
            200: {
              description: "It does; `uptime` in seconds",
              schema: Type.Object({ status: Type.Literal("ok"), version: Type.String(), uptime: Type.Integer() }),
            },
          },
          errors: [],
        }),
      ),
  };
}
