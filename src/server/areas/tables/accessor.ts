import { AppError, badField } from "../../../kernel/errors.ts";
import { jsonCopy, plainCopy } from "../../../kernel/json/copy.ts";
import { isJsonObject } from "../../../kernel/json/json.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { callerNameOf, type Principal } from "../../access/principal.ts";
import type { TableAddress } from "../../access/table-door.ts";
import type {
  AggregateQuery as AggregateOptions,
  DatabaseAccessor,
  ListQuery as ListOptions,
  TableAccessor,
} from "../../config/app/index.ts";
import { Query } from "../../http/exchange/query.ts";
import { createQueryParser, type QueryParser } from "../../http/exchange/query-parser.ts";
import { AggregateQuery, BatchBody, CountQuery, ListQuery, type ReadRequest, SearchQuery } from "./model/requests.ts";
import type { TableService } from "./service.ts";

const listParser = createQueryParser(ListQuery);
const countParser = createQueryParser(CountQuery);
const aggregateParser = createQueryParser(AggregateQuery);
const searchParser = createQueryParser(SearchQuery);
const batchParser = createParser(BatchBody);

/** Returns `app.db(…)` or `app.as(auth).db(…)`: the service behind HTTP, called as the server itself or as a user. */
export function createDatabaseAccessor(
  service: TableService,
  principal: Principal,
  namespace: string,
  instanceId: string | null,
): DatabaseAccessor {
  return {
    table: (table) => createTableAccessor(service, principal, { namespace, instanceId, table }),
    transaction: (work) => service.transaction(principal, { namespace, instanceId }, work),
  };
}

/** Caller name without a user. All such callers have one common share of long reads. */
const NOBODY = "app";

function createTableAccessor(service: TableService, principal: Principal, address: TableAddress): TableAccessor {
  const asker = { principal, callerName: callerNameOf(principal, () => NOBODY), signal: undefined };
  /** Returns a read with the options as the query string that a client would send. */
  const asked = <Values>(
    parser: QueryParser,
    options: ListOptions | AggregateOptions,
    q?: string,
  ): ReadRequest<Values> => {
    const text = queryOf(options, q);
    // The type of the values comes from the parser's schema.
    return { ...asker, query: () => parser.parse(new Query(text, parser.known)) as Values, queryText: () => text };
  };
  return {
    async get(id) {
      try {
        return await service.get({ ...asker, query: () => ({}) }, address, id);
      } catch (cause) {
        if (cause instanceof AppError && cause.status === 404) return null;
        throw cause;
      }
    },
    list: async (options = {}) => service.list(asked(listParser, options), address),
    count: async (options = {}) => (await service.count(asked(countParser, options), address)).total,
    aggregate: async (options = {}) => service.aggregate(asked(aggregateParser, options), address),
    search: async (q, options = {}) => service.search(asked(searchParser, options, q), address),
    // Copies: the caller may change its object before the write runs, and the answer while it is announced to others.
    async insert(record) {
      const copy = jsonCopy(record);
      return plainCopy(await service.insert(principal, address, () => copy));
    },
    async upsert(record, options) {
      const copy = jsonCopy(record);
      const conflictTarget = options?.conflictTarget ?? "id";
      return plainCopy((await service.upsert(principal, address, () => copy, { conflictTarget })).record);
    },
    async update(id, changes) {
      const copy = jsonCopy(changes);
      return plainCopy(await service.update(principal, address, id, () => copy));
    },
    delete: (id) => service.delete(principal, address, id),
    async batch(operations) {
      const copy = jsonCopy(operations);
      const body = () => batchParser.parse(isJsonObject(copy) ? copy : {});
      const { inserted, updated, deleted } = await service.batch(principal, address, body, { upsert: false });
      return { inserted: inserted.map(plainCopy), updated: updated.map(plainCopy), deleted };
    },
  };
}

/** Returns the query string. Errors: 400 for a filter in place of the options, which would not be looked at. */
function queryOf(options: ListOptions | AggregateOptions, q: string | undefined): string {
  if (Array.isArray(options)) {
    throw badField("filter", "invalid_value", 'A filter is a member of the options: { filter: [["year", ">", 1999]] }');
  }
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...options, q })) {
    if (value !== undefined) parameters.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  return parameters.toString();
}
