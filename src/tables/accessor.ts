import { SERVER } from "../access/principal.ts";
import type { TableAddress } from "../access/table-door.ts";
import type {
  AggregateQuery as AggregateOptions,
  DatabaseAccessor,
  ListQuery as ListOptions,
  TableAccessor,
} from "../config/app/index.ts";
import { Query } from "../http/exchange/query.ts";
import { createQueryParser, type QueryParser } from "../http/exchange/query-parser.ts";
import { AppError } from "../kernel/errors.ts";
import { jsonCopy } from "../kernel/json/copy.ts";
import { isJsonObject } from "../kernel/json/json.ts";
import { createParser } from "../kernel/schema/parser.ts";
import {
  AggregateQuery,
  type Asked,
  BatchBody,
  CountQuery,
  type GetValues,
  ListQuery,
  SearchQuery,
} from "./api/requests.ts";
import type { TableService } from "./service.ts";

const NOTHING_ASKED: Asked<GetValues> = { query: () => ({}) };
const listParser = createQueryParser(ListQuery, { takesOthers: true });
const countParser = createQueryParser(CountQuery, { takesOthers: true });
const aggregateParser = createQueryParser(AggregateQuery, { takesOthers: true });
const searchParser = createQueryParser(SearchQuery, { takesOthers: true });
const batchParser = createParser(BatchBody);

/** `app.db(…)`: the same service, called as the server itself. */
export function createDatabaseAccessor(
  service: TableService,
  namespace: string,
  instanceId: string | null,
): DatabaseAccessor {
  return {
    table: (table) => createTableAccessor(service, { namespace, instanceId, table }),
    transaction: (work) => service.transaction(SERVER, { namespace, instanceId }, work),
  };
}

function createTableAccessor(service: TableService, address: TableAddress): TableAccessor {
  return {
    async get(id) {
      try {
        return await service.get(SERVER, address, id, NOTHING_ASKED);
      } catch (cause) {
        if (cause instanceof AppError && cause.status === 404) return null;
        throw cause;
      }
    },
    list: async (options = {}) => service.list(SERVER, address, asked(listParser, options)),
    count: async (options = {}) => (await service.count(SERVER, address, asked(countParser, options))).total,
    aggregate: async (options = {}) => service.aggregate(SERVER, address, asked(aggregateParser, options)),
    search: async (q, options = {}) => service.search(SERVER, address, asked(searchParser, { ...options, q })),
    // A copy: the caller may change its object before the write runs.
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
      return service.batch(SERVER, address, () => batchParser.parse(isJsonObject(copy) ? copy : {}), { upsert: false });
    },
  };
}

/** The options of a call as the query string that a client would send. */
function asked<Values>(parser: QueryParser, options: (ListOptions & { q?: string }) | AggregateOptions): Asked<Values> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) parameters.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  const text = parameters.toString();
  // The parser's schema is the one that the values' type comes from.
  return { query: () => parser.parse(new Query(text)) as Values, queryText: () => text };
}
