import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { SqlAccessor } from "../../config/app/index.ts";
import type { RecordChange, StorageEngine } from "../../db/index.ts";
import { createAnswerRoom } from "../../db/processes/answer-room.ts";
import { SqlFile } from "./database-file.ts";
import { sqlEndpoints, tableQueryEndpoints } from "./endpoints.ts";
import { READERS_MAX_PER_DATABASE } from "./limits.ts";
import { createSqlAccessor, Queries, SqlService } from "./service.ts";
import { type QueriedTables, TableQueries } from "./table-queries.ts";

export type SqlArea = ReturnType<typeof createSqlArea>;

/** Creates the area of declared SQL databases, one file each: `<data>/d1/NAME.db`, and of queries of tables by SQL. Rules: SPEC.md. */
export function createSqlArea(deps: {
  audit: RecordChange;
  engine: Pick<StorageEngine, "gate" | "keep">;
  /** The names under `d1` in the config. */
  databases: readonly string[];
  /** Finds the file of a namespace or an instance, and its declared tables. Errors: 404. */
  tables: (address: { namespace: string; instanceId: string | null }) => QueriedTables;
  dataDirectory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}) {
  const { databases, clock, logger } = deps;
  const directory = join(deps.dataDirectory, "d1");
  const services = new Map<string, SqlService>();
  const files: SqlFile[] = [];
  if (databases.length > 0) mkdirSync(directory, { recursive: true });
  const room = createAnswerRoom();
  for (const name of databases) {
    const path = join(directory, `${name}.db`);
    const file = new SqlFile(path, deps);
    files.push(file);
    const readers = new Queries({ file, role: "reader", processesMax: READERS_MAX_PER_DATABASE, room, clock });
    const writer = new Queries({ file, role: "writer", processesMax: 1, room, clock });
    services.set(name, new SqlService({ path, readers, writer, logger }));
  }
  const tableQueries = new TableQueries({ clock, room, logger });
  return {
    endpoints: [
      ...sqlEndpoints(services, deps),
      ...tableQueryEndpoints(async (address, ...asked) => tableQueries.run(deps.tables(address), ...asked), deps),
    ],
    /** Returns `app.sql(database)`. Errors: 404 if no such database is declared. */
    accessor(name: string): SqlAccessor {
      const service = services.get(name);
      if (service === undefined) throw notFound(`There is no database "${name}"`);
      return createSqlAccessor(service);
    },
    /** Ends the query processes, and closes the files. */
    async stop(): Promise<void> {
      await Promise.all([tableQueries, ...services.values()].map((queries) => queries.stop()));
      await Promise.all(files.map((file) => file.close()));
    },
  };
}
