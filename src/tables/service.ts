import type { Principal } from "../access/principal.ts";
import type { ReadAccess, RecordFilter, TableAddress, TableDoor } from "../access/table-door.ts";
import type { AppAccess, BatchResult, ListResult } from "../config/app-access.ts";
import type { TableRecord } from "../config/types.ts";
import type { Clock } from "../kernel/clock.ts";
import { badField, notFound } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { Logger } from "../kernel/logger.ts";
import { chain, type MaybePromise } from "../kernel/maybe-promise.ts";
import { createDoor, denied } from "./access.ts";
import { parseBatch, parseByFilter, runBatch, runByFilter } from "./batch.ts";
import { parsePatch } from "./changes.ts";
import { type ParsedFilter, parseConditions } from "./filter.ts";
import { matches } from "./filter-match.ts";
import { createInstanceDoor } from "./instance-access.ts";
import type { Parameters } from "./list-query.ts";
import { createMutations, type WriteGrants } from "./mutations.ts";
import type { Namespace, Table } from "./namespaces.ts";
import { createReads, type Source } from "./reads.ts";
import { createSearch } from "./search.ts";
import { isOperator } from "./validation.ts";
import { createWrites } from "./writes.ts";

/** Spec: Limits / Realtime; its filters are small because each change asks them all. */
const CHANNEL_CONDITIONS_MAX = 5;

/** A request's body, read only after the rules that need no record have been asked. */
type Body = () => MaybePromise<JsonObject>;

/** What the table endpoints do. Every method throws `AppError`s in the order of decisions 3. Spec: Table endpoints. */
export interface TableService {
  get(principal: Principal, address: TableAddress, id: string, query: Parameters): MaybePromise<TableRecord>;
  list(principal: Principal, address: TableAddress, query: Parameters): MaybePromise<ListResult>;
  count(principal: Principal, address: TableAddress, query: Parameters): MaybePromise<{ total: number }>;
  search(principal: Principal, address: TableAddress, query: Parameters): MaybePromise<ListResult>;
  insert(principal: Principal, address: TableAddress, body: Body): Promise<TableRecord>;
  upsert(
    principal: Principal,
    address: TableAddress,
    body: Body,
    options: { conflictTarget: string },
  ): Promise<{ record: TableRecord; isNew: boolean }>;
  update(principal: Principal, address: TableAddress, id: string, body: Body): Promise<TableRecord>;
  delete(principal: Principal, address: TableAddress, id: string): Promise<void>;
  batch(principal: Principal, address: TableAddress, body: Body, options: { upsert: boolean }): Promise<BatchResult>;
  batchByFilter(
    principal: Principal,
    address: TableAddress,
    body: Body,
  ): Promise<{ processed: number; succeeded: number }>;
  readonly door: TableDoor;
}

export function createTableService(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  app: () => AppAccess;
}): TableService {
  const { namespaces } = deps;
  const door = createDoor(deps);
  const reads = createReads({ door });
  const search = createSearch({ reads });
  const writes = createWrites({ ...deps, door });
  const mutations = createMutations({ door, app: deps.app, namespaceOf: (model) => namespaceOf(model.namespace) });
  const instances = createInstanceDoor({ logger: deps.logger });

  const namespaceOf = (name: string): Namespace => {
    const namespace = namespaces.get(name);
    if (namespace === undefined) throw notFound(`There is no namespace "${name}"`);
    return namespace;
  };
  const find = (address: TableAddress): { namespace: Namespace; table: Table } => {
    const namespace = namespaceOf(address.namespace);
    const table = namespace.tables.get(address.table);
    if (table === undefined) throw notFound(`There is no table "${address.table}" in ${address.namespace}`);
    if ((namespace.kind === "dynamic") !== (address.instanceId !== null)) {
      const wanted = namespace.kind === "dynamic" ? "takes" : "takes no";
      throw notFound(`${address.namespace} ${wanted} instance id in the path`);
    }
    return { namespace, table };
  };
  const source = (principal: Principal, address: TableAddress): MaybePromise<Source> => {
    const { namespace, table } = find(address);
    if (namespace.kind === "static") return { table, file: namespace.file };
    return chain(instances.open(principal, namespace, address.instanceId), (file) => ({ table, file }));
  };
  /** For inserts: the file is made once the rules that need no record, and the request's form, have passed. */
  const sink = async (principal: Principal, address: TableAddress) => {
    const { namespace, table } = find(address);
    if (namespace.kind === "static") return { table, file: () => namespace.file };
    const make = await instances.openForWriting(principal, namespace, address.instanceId);
    return { table, file: make };
  };
  /** Of records that have to be there: none is in an instance that is not. */
  const missing = (principal: Principal, address: TableAddress, grants: WriteGrants, id: string): never => {
    if (principal.kind === "anonymous" && [grants.update, grants.delete].some((grant) => grant.kind === "record")) {
      throw denied(principal);
    }
    throw notFound(`There is no record "${id}" in ${address.table}`);
  };

  return {
    get: (principal, address, id, query) =>
      chain(source(principal, address), (from) => reads.get(principal, from, id, query)),
    list: (principal, address, query) =>
      chain(source(principal, address), (from) => reads.list(principal, from, query)),
    count: (principal, address, query) =>
      chain(source(principal, address), (from) => reads.count(principal, from, query)),
    search: (principal, address, query) =>
      chain(source(principal, address), (from) => search.search(principal, from, query)),

    async insert(principal, address, body) {
      const { table, file } = await sink(principal, address);
      const grants = await writes.grants(principal, table.model, ["insert"]);
      const value = await body();
      return writes.run(file(), principal, (context) => mutations.insert(context, grants, table, value, 0));
    },

    async upsert(principal, address, body, { conflictTarget }) {
      const { table, file } = await sink(principal, address);
      const grants = await writes.grants(principal, table.model, ["insert", "update"], { either: true });
      const value = await body();
      const target = table.model.byName.get(conflictTarget);
      if (target?.isUnique !== true) {
        throw badField(
          "conflictTarget",
          "invalid_value",
          `conflictTarget must be id or a unique field, got "${conflictTarget}"`,
        );
      }
      checkUpsert(value, conflictTarget);
      const toPatch = (changes: JsonObject) => parsePatch(table.model, table.validator, changes);
      const options = { target, index: 0, toPatch };
      return writes.run(file(), principal, (context) => mutations.upsert(context, grants, table, value, options));
    },

    async update(principal, address, id, body) {
      const { table, file } = await source(principal, address);
      const grants = await writes.grants(principal, table.model, ["update"]);
      const patch = parsePatch(table.model, table.validator, await body());
      if (file === null) return missing(principal, address, grants, id);
      return writes.run(file, principal, (context) => mutations.update(context, grants, table, id, patch));
    },

    async delete(principal, address, id) {
      const { table, file } = await source(principal, address);
      const grants = await writes.grants(principal, table.model, ["delete"]);
      if (file === null) return missing(principal, address, grants, id);
      await writes.run(file, principal, (context) => mutations.delete(context, grants, table, id));
    },

    async batch(principal, address, body, options) {
      const { table, file } = await sink(principal, address);
      // Who may do none of it learns nothing from the form of the body.
      await writes.grants(principal, table.model, ["insert", "update", "delete"], { either: true });
      const parsed = parseBatch(await body());
      const insertActions = options.upsert ? (["insert", "update"] as const) : (["insert"] as const);
      const inserting = await writes.grants(principal, table.model, parsed.inserts.length > 0 ? insertActions : [], {
        either: options.upsert && parsed.inserts.length > 0,
      });
      const actions = [
        ...(parsed.updates.length > 0 ? ["update" as const] : []),
        ...(parsed.deletes.length > 0 ? ["delete" as const] : []),
      ];
      const others = await writes.grants(principal, table.model, actions);
      const update = others.update.kind === "none" ? inserting.update : others.update;
      const grants = { ...others, insert: inserting.insert, update };
      if (options.upsert) for (const one of parsed.inserts) refuseOperators(one);
      return writes.run(file(), principal, (context) => runBatch(mutations, context, grants, table, parsed, options));
    },

    async batchByFilter(principal, address, body) {
      const { table, file } = await source(principal, address);
      await writes.grants(principal, table.model, ["update", "delete"], { either: true });
      const parsed = parseByFilter(table, await body());
      const grants = await writes.grants(principal, table.model, [parsed.action]);
      if (file === null) return { processed: 0, succeeded: 0 };
      return runByFilter({ mutations, writes, door }, principal, grants, table, file, parsed);
    },

    door: createTableDoor({ find, namespaces, door, instances }),
  };
}

/** Errors: 400 for operators, and for a body without the value that decides. */
function checkUpsert(body: JsonObject, conflictTarget: string): void {
  refuseOperators(body);
  const value = body[conflictTarget];
  if (value === undefined || value === null) {
    throw badField(conflictTarget, "required", `${conflictTarget} is required to upsert`);
  }
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  if (!isScalar) throw badField(conflictTarget, "invalid_type", `${conflictTarget} must be text or a number`);
}

function refuseOperators(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    if (isOperator(value as JsonValue))
      throw badField(name, "invalid_value", `${name}: operators work in updates only`);
  }
}

/** The same door for those outside the area. */
function createTableDoor(deps: {
  find(address: TableAddress): { namespace: Namespace; table: Table };
  namespaces: ReadonlyMap<string, Namespace>;
  door: ReturnType<typeof createDoor>;
  instances: ReturnType<typeof createInstanceDoor>;
}): TableDoor {
  const recordFilter = (filter: ParsedFilter): RecordFilter => ({
    key: JSON.stringify(
      [filter.all, filter.any].map((list) => list.map((one) => [one.field.name, one.operator, one.value])),
    ),
    matches: (record) => matches(filter, record),
  });
  return {
    find(namespace, table) {
      const found = deps.namespaces.get(namespace);
      return found?.tables.has(table) === true ? { isDynamic: found.kind === "dynamic" } : null;
    },
    isDynamic(namespace) {
      const found = deps.namespaces.get(namespace);
      return found === undefined ? null : found.kind === "dynamic";
    },
    readAccess(principal, address) {
      const { namespace, table } = deps.find(address);
      const mayOpen =
        namespace.kind === "static" ? null : deps.instances.open(principal, namespace, address.instanceId);
      return chain(mayOpen, () =>
        chain(deps.door.grant(principal, table.model, "read"), (grant): ReadAccess => {
          if (grant.kind === "none") throw denied(principal);
          if (grant.kind === "all") return { kind: "all" };
          if (grant.kind === "filter") return { kind: "filter", filter: recordFilter(grant.filter) };
          return { kind: "record", allows: (record) => deps.door.coversRead(grant, principal, table.model, record) };
        }),
      );
    },
    parseFilter(address, { all, any }) {
      const { model } = deps.find(address).table;
      return recordFilter({
        all: parseConditions(model, all, { name: "filters", conditionsMax: CHANNEL_CONDITIONS_MAX }),
        any: parseConditions(model, any, { name: "orFilters", conditionsMax: CHANNEL_CONDITIONS_MAX }),
      });
    },
  };
}
