import { AppError } from "../../../kernel/errors.ts";
import { jsonCopy, plainCopy } from "../../../kernel/json/copy.ts";
import { isJsonObject } from "../../../kernel/json/json.ts";
import { currentTrace } from "../../../kernel/observing/request-trace.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { callerNameOf, type Principal } from "../../access/principal.ts";
import type { TableAddress } from "../../access/table-door.ts";
import type { BatchOperations, BatchResult, DatabaseAccessor, TableAccessor } from "../../config/app/index.ts";
import type { TableRecord } from "../../config/types.ts";
import type { ReadCaller } from "../../db/index.ts";
import { Query } from "../../http/bodies/query.ts";
import { createQueryParser, type QueryParser } from "../../http/exchange/query-parser.ts";
import { AppQuery, formerReads, type Parameters, type TableReads } from "./dialect/table-query.ts";
import {
  AggregateQuery,
  BatchBody,
  CountQuery,
  ListQuery,
  NearestQuery,
  type ReadRequest,
  SearchQuery,
} from "./model/requests.ts";
import type { TableService } from "./service.ts";

const listParser = createQueryParser(ListQuery);
const countParser = createQueryParser(CountQuery);
const aggregateParser = createQueryParser(AggregateQuery);
const searchParser = createQueryParser(SearchQuery);
const nearestParser = createQueryParser(NearestQuery);
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

/** Caller name without a user outside of requests. All such callers have one common share of long reads and of searches by meaning. */
const NOBODY = "app";

type Asker = ReadCaller & { principal: Principal };

function createTableAccessor(service: TableService, principal: Principal, address: TableAddress): TableAccessor {
  // Named by each read: an accessor may be kept, and serve several requests.
  const asker = (): Asker => ({
    principal,
    callerName: callerNameOf(principal, () => currentTrace()?.requester.address() ?? NOBODY),
    signal: undefined,
  });
  /** Returns a read with the parameters as the query string that a client would send. */
  const asked = <Values>(parser: QueryParser, parameters: Parameters): ReadRequest<Values> => {
    const text = queryOf(parameters);
    // The type of the values comes from the parser's schema.
    return { ...asker(), query: () => parser.parse(new Query(text, parser.known)) as Values, queryText: () => text };
  };
  const reads: TableReads = {
    list: async (parameters) => service.list(asked(listParser, parameters), address),
    count: async (parameters) => (await service.count(asked(countParser, parameters), address)).total,
    aggregate: async (parameters) => service.aggregate(asked(aggregateParser, parameters), address),
    search: async (q, parameters) => service.search(asked(searchParser, { ...parameters, q }), address),
    nearest: async (id, parameters) => service.nearest(asked(nearestParser, parameters), address, id),
  };
  const say = service.former.of(`${address.namespace}.${address.table}`);
  const methods = { ...formerReads(reads, say), ...recordsOf(service, principal, address, asker) };
  // The types of a query's fields and paths are those of the config.
  return Object.assign(new AppQuery(reads), methods) as unknown as TableAccessor;
}

/** Returns the operations on single records. */
function recordsOf(service: TableService, principal: Principal, address: TableAddress, asker: () => Asker) {
  return {
    async get(id: string): Promise<TableRecord | null> {
      try {
        return await service.get({ ...asker(), query: () => ({}) }, address, id);
      } catch (cause) {
        if (cause instanceof AppError && cause.status === 404) return null;
        throw cause;
      }
    },
    // Copies: the caller may change its object before the write runs, and the answer while it is announced to others.
    async insert(record: TableRecord) {
      const copy = jsonCopy(record);
      return plainCopy(await service.insert(principal, address, () => copy));
    },
    async upsert(record: TableRecord, options?: { conflictTarget?: string }) {
      const copy = jsonCopy(record);
      const conflictTarget = options?.conflictTarget ?? "id";
      return plainCopy((await service.upsert(principal, address, () => copy, { conflictTarget })).record);
    },
    async update(id: string, changes: TableRecord) {
      const copy = jsonCopy(changes);
      return plainCopy(await service.update(principal, address, id, () => copy));
    },
    delete: (id: string) => service.delete(principal, address, id),
    async batch(operations: BatchOperations): Promise<BatchResult> {
      const copy = jsonCopy(operations);
      const body = () => batchParser.parse(isJsonObject(copy) ? copy : {});
      const { inserted, updated, deleted } = await service.batch(principal, address, body, { upsert: false });
      return { inserted: inserted.map(plainCopy), updated: updated.map(plainCopy), deleted };
    },
  };
}

/** Returns the query string. */
function queryOf(parameters: Parameters): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null) continue;
    sent.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  return sent.toString();
}
