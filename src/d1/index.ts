import type { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { AnyElysia } from "elysia";
import type { SqlAccessor } from "../config/app-access.ts";
import type { Http } from "../http/http.ts";
import type { Clock } from "../kernel/clock.ts";
import { notFound } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { createAnswerRoom } from "./large-answers.ts";
import { READERS_MAX_PER_DATABASE } from "./limits.ts";
import { createProcessPool } from "./process-pool.ts";
import { createSqlRoutes } from "./routes.ts";
import { createSqlAccessor, createSqlService, type SqlService } from "./service.ts";
import { keepDatabaseFile } from "./store.ts";

export interface SqlArea {
  routes(http: Http): AnyElysia;
  /** Errors: 404 when no such database is declared. */
  accessor(database: string): SqlAccessor;
  /** Ends the query processes, and closes the files. */
  stop(): Promise<void>;
}

/** Declared SQL databases, one file each: `<data>/d1/NAME.db`. Spec: Native resource endpoints; rules: SPEC.md. */
export function createSqlArea(deps: {
  /** The names under `d1` in the config. */
  databases: readonly string[];
  dataDirectory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): SqlArea {
  const { databases, clock, logger } = deps;
  const directory = join(deps.dataDirectory, "d1");
  const services = new Map<string, SqlService>();
  const kept: Database[] = [];
  if (databases.length > 0) mkdirSync(directory, { recursive: true });
  const room = createAnswerRoom();
  for (const name of databases) {
    const path = join(directory, `${name}.db`);
    kept.push(keepDatabaseFile(path, deps.ids));
    const readers = createProcessPool({ path, role: "reader", sizeMax: READERS_MAX_PER_DATABASE, room, clock });
    const writer = createProcessPool({ path, role: "writer", sizeMax: 1, room, clock });
    services.set(name, createSqlService({ path, readers, writer, logger }));
  }
  return {
    routes: (http) => createSqlRoutes(http, services, clock),
    accessor(name) {
      const service = services.get(name);
      if (service === undefined) throw notFound(`There is no database "${name}"`);
      return createSqlAccessor(service);
    },
    async stop() {
      await Promise.all([...services.values()].map((service) => service.stop()));
      for (const database of kept) database.close();
    },
  };
}
