import { SERVER } from "../access/principal.ts";
import type { TableAddress } from "../access/table-door.ts";
import type { DatabaseAccessor, ListQuery, TableAccessor } from "../config/app-access.ts";
import { AppError } from "../kernel/errors.ts";
import { isJsonObject } from "../kernel/json.ts";
import { jsonCopy } from "../kernel/json-copy.ts";
import type { Parameters } from "./query/list-query.ts";
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
    // What the caller holds is its own, and may change before it is written.
    async insert(record) {
      const copy = jsonCopy(record);
      return service.insert(SERVER, address, () => copy);
    },
    async upsert(record, options) {
      const copy = jsonCopy(record);
      const conflictTarget = options?.conflictTarget ?? "id";
      return (await service.upsert(SERVER, address, () => copy, { conflictTarget })).record;
    },
    async update(id, changes) {
      const copy = jsonCopy(changes);
      return service.update(SERVER, address, id, () => copy);
    },
    delete: (id) => service.delete(SERVER, address, id),
    async batch(operations) {
      const copy = jsonCopy(operations);
      return service.batch(SERVER, address, () => (isJsonObject(copy) ? copy : {}), { upsert: false });
    },
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
