import { SERVER } from "../access/principal.ts";
import type { TableAddress } from "../access/table-door.ts";
import type { DatabaseAccessor, ListQuery, TableAccessor } from "../config/app-access.ts";
import { AppError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Parameters } from "./list-query.ts";
import type { TableService } from "./service.ts";

const NO_QUERY: Parameters = { get: () => null };

/** `app.db(…)`: the same service under the server's own name. Decisions 12. */
export function createDatabaseAccessor(
  service: TableService,
  namespace: string,
  instanceId: string | null,
): DatabaseAccessor {
  return { table: (table) => createTableAccessor(service, { namespace, instanceId, table }) };
}

function createTableAccessor(service: TableService, address: TableAddress): TableAccessor {
  return {
    async get(id) {
      try {
        return await service.get(SERVER, address, id, NO_QUERY);
      } catch (cause) {
        if (cause instanceof AppError && cause.status === 404) return null;
        throw cause;
      }
    },
    list: async (query = {}) => service.list(SERVER, address, parametersOf(query)),
    count: async (query = {}) => (await service.count(SERVER, address, parametersOf(query))).total,
    search: async (q, query = {}) => service.search(SERVER, address, parametersOf({ ...query, q })),
    insert: (record) => service.insert(SERVER, address, () => record),
    upsert: async (record, options) =>
      (await service.upsert(SERVER, address, () => record, { conflictTarget: options?.conflictTarget ?? "id" })).record,
    update: (id, changes) => service.update(SERVER, address, id, () => changes),
    delete: (id) => service.delete(SERVER, address, id),
    batch: (operations) =>
      // A copy as plain JSON: what the caller holds is its own.
      service.batch(SERVER, address, () => JSON.parse(JSON.stringify(operations)) as JsonObject, { upsert: false }),
  };
}

/** The options of a call as the parameters that the endpoints take. */
function parametersOf(query: ListQuery & { q?: string }): Parameters {
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) values.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  return { get: (name) => values.get(name) ?? null };
}
