import type { Clock } from "../../../kernel/clock.ts";
import { notFound } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { chain, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { Scheduler } from "../../../kernel/time/scheduler.ts";
import { type Principal, SERVER } from "../../access/principal.ts";
import type { Principals } from "../../access/principals.ts";
import type { RecordFiles } from "../../access/record-files.ts";
import type { SignerDeps } from "../../access/signers.ts";
import type { TableAddress } from "../../access/table-door.ts";
import type { AppAccess, BatchResult } from "../../config/app/index.ts";
import type { RateLimit, TableRecord } from "../../config/types.ts";
import type { DatabaseFile, ReadCaller } from "../../db/index.ts";
import { createFormerForms } from "./dialect/former-forms.ts";
import { createMeaning } from "./embeddings/meaning.ts";
import { createExpanding } from "./expand/expand.ts";
import { createDownloads } from "./files/downloads.ts";
import { RecordForm } from "./files/form.ts";
import { createFormWrites, type FormRequest } from "./files/form-writes.ts";
import { createFileSigning } from "./files/signing.ts";
import { startAnswerSweep } from "./idempotency/kept-answers.ts";
import { createOnce } from "./idempotency/once.ts";
import { createTableLookups } from "./lookups/session.ts";
import type { TableModel } from "./model/model.ts";
import { isLarge } from "./model/record-size.ts";
import type { BatchBody, ByFilterBody, ReadRequest } from "./model/requests.ts";
import { createAggregating } from "./query/aggregate.ts";
import { createReads, type Source } from "./query/reads.ts";
import { createSearch } from "./query/search.ts";
import { createMeasuring } from "./query/size.ts";
import { createSources, type Sources } from "./query/sources.ts";
import type { Namespace, Table } from "./records/namespaces.ts";
import { createReferrerCounts } from "./records/referrer-counts.ts";
import { seenBy } from "./records/users-view.ts";
import { type Asker, createRecordRights, denied } from "./rules/access.ts";
import { createInstanceRights } from "./rules/instance-access.ts";
import { createTableDoor } from "./table-door.ts";
import { createFarReferences } from "./tombstones/far-references.ts";
import type { Followers } from "./tombstones/followers.ts";
import type { PrepareJob } from "./transactions/handle.ts";
import { createAppTransactions, createTransactions } from "./transactions/transactions.ts";
import { createAsking, type WriteGrants } from "./write/asking.ts";
import {
  type Batch,
  type ByFilterResult,
  bodiesOf,
  checkBatch,
  parseByFilter,
  placedRecords,
  runBatch,
  runByFilter,
} from "./write/batch.ts";
import { type CascadeSteps, createCascadeSteps, mayDeleteInSteps } from "./write/cascade-steps.ts";
import { parsePatch } from "./write/changes.ts";
import { createConditions } from "./write/conditions.ts";
import { createAfterHooks } from "./write/hook-calls.ts";
import { createMutations, type Mutations } from "./write/mutations.ts";
import { checkPatternCost } from "./write/operations.ts";
import { prepareLarge } from "./write/prepared.ts";
import { createRecordWrites } from "./write/record-writes.ts";
import { CascadeTooLarge } from "./write/referring.ts";
import { checkHasTarget, conflictColumn } from "./write/upserts.ts";
import type { WriteContext } from "./write/write-context.ts";
import { createWrites, type KeepAnswer, type Writes } from "./write/writes.ts";

/** Reads the body of a request; called after the rules that need no record. */
type Body<T = JsonObject> = () => MaybePromise<T>;

export interface Upserted {
  record: TableRecord;
  isNew: boolean;
}

export type TableService = ReturnType<typeof createTableService>;

/**
 * Returns the operations of the table endpoints. Each checks in this order: address (404), rights (401, 403), the form of the
 * request (400), the records (404, 409).
 */
export function createTableService(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  followers: Followers;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  ids: Ids;
  logger: Logger;
  app: () => AppAccess;
  prepareJob: PrepareJob;
  accountsChanged: () => Promise<void>;
  /** The bytes of records' files. */
  files: () => RecordFiles;
  /** Looks up who has signed urls. */
  account: SignerDeps["account"];
  serviceKey: SignerDeps["serviceKey"];
  secret: string;
  /** Origin of signed urls; null: the address that the request was sent to. */
  publicUrl: string | null;
  /** Bound of the searches by meaning of one caller. */
  embeddingsLimit: RateLimit;
  /** Path of sqlite-vec, where a table has vectors. */
  vectorLibrary: () => string;
}) {
  const rights = createRecordRights(deps);
  const instances = createInstanceRights(deps);
  const former = createFormerForms(deps.logger);
  const lookups = createTableLookups({ ...deps, former });
  const sources = createSources({ namespaces: deps.namespaces, instances, lookups });
  const afterHooks = createAfterHooks(deps);
  const writes = createWrites({ ...deps, rights, afterHooks });
  const tableOf = (model: TableModel): Table =>
    sources.find({ namespace: model.namespace, instanceId: null, table: model.name }, { anyInstance: true }).table;
  const fileOf = (name: string): DatabaseFile => {
    const namespace = deps.namespaces.get(name);
    if (namespace?.kind !== "static") throw new Error(`the namespace ${name} has instances`);
    return namespace.file;
  };
  const checkFar = createFarReferences({ ...deps, tableOf, rights });
  const mutations = createMutations({ rights, writes: createRecordWrites({ ...deps, rights, tableOf, checkFar }) });
  const steps = createCascadeSteps({ writes, tableOf });
  const asking = createAsking(rights);
  const conditions = createConditions({ rights, asking });

  const expanding = createExpanding({ tableOf, rights, fileOf });
  const reads = createReads({ rights, expanding });
  const aggregating = createAggregating({ reads });
  const meaning = createMeaning({ ...deps, reads, expanding, limit: deps.embeddingsLimit });
  const search = createSearch({ reads, expanding, hybrid: meaning.search });
  /** Returns a read that finds the source at an address first. */
  const reading =
    <Values, Rest extends unknown[], T>(
      read: (asked: ReadRequest<Values>, source: Source, ...rest: Rest) => MaybePromise<T>,
    ) =>
    (asked: ReadRequest<Values>, address: TableAddress, ...rest: Rest): MaybePromise<T> =>
      chain(sources.forReading(asked.principal, address), (source) =>
        read(asked, { ...source, table: seenBy(asked.principal, source.table) }, ...rest),
      );
  const turns = new Scheduler();
  const stopSweep = startAnswerSweep(deps);
  const get = reading(reads.get);
  const modelOf = (address: TableAddress): TableModel => sources.find(address).table.model;
  const signing = createFileSigning(deps);
  const forms = createFormWrites({ ...deps, sources, writes, mutations, conditions });
  return {
    get,
    ...createDownloads({ ...deps, get, modelOf, signing }),
    signing,
    modelOf,
    insertForm: forms.insertForm,
    upsertForm: forms.upsertForm,
    updateForm: (request: FormRequest, address: TableAddress, id: string, options: UpdateFormOptions) =>
      forms.updateForm(request, address, id, {
        ...options,
        missing: (grants) => missing(request.principal, address, grants, id),
      }),
    formOf: (context: ConstructorParameters<typeof RecordForm>[0]) => new RecordForm(context, deps.clock),
    list: reading(reads.list),
    listed: reading(reads.listed),
    count: reading(reads.count),
    aggregate: reading(aggregating.aggregate),
    search: reading(search.search),
    nearest: reading(meaning.nearest),
    ...createTableWrites({ sources, writes, mutations, steps, conditions }),
    ...createTableBatches({ sources, writes, mutations, steps, conditions, rights, turns }),
    ...createTransactions({ sources, writes, mutations, conditions, turns, namespaces: deps.namespaces }),
    ...createAppTransactions({ ...deps, tableOf, fileOf, sources, writes, mutations, asking, former }),
    /** Executes requests with an idempotency key at most once. */
    once: createOnce({ ...deps, instances, rights, lookups }),
    door: createTableDoor({ sources, namespaces: deps.namespaces, rights, instances, lookups }),
    lookups,
    /** The log of former forms of queries. */
    former,
    measure: createMeasuring(sources),
    countReferrers: createReferrerCounts({
      ...deps,
      find: (address) => sources.forReading(SERVER, address),
    }),
    /** Waits for the hooks after writes. */
    async stop() {
      await Promise.all([stopSweep(), afterHooks.ended()]);
    },
  };
}

interface UpdateFormOptions {
  condition: string | null;
  keep?: KeepAnswer<TableRecord> | undefined;
}

interface WriteDeps {
  sources: Sources;
  writes: Writes;
  mutations: Mutations;
  steps: CascadeSteps;
  conditions: ReturnType<typeof createConditions>;
}

function createTableWrites({ sources, writes, mutations, steps, conditions }: WriteDeps) {
  return {
    async insert(
      principal: Principal,
      address: TableAddress,
      body: Body,
      keep?: KeepAnswer<TableRecord>,
    ): Promise<TableRecord> {
      const { table, file, rules } = await sources.forInserting(principal, address);
      const asker = { principal, rules };
      const grants = await writes.grants(asker, table.model, ["insert"]);
      const value = await body();
      const insert = (context: WriteContext) => mutations.insert(context, grants, table, value, 0);
      return writes.run(file, asker, insert, { keep });
    },

    async upsert(
      principal: Principal,
      address: TableAddress,
      body: Body,
      { conflictTarget, keep }: { conflictTarget: string; keep?: KeepAnswer<Upserted> | undefined },
    ): Promise<Upserted> {
      const { table, file, rules } = await sources.forInserting(principal, address);
      const asker = { principal, rules };
      const grants = await writes.grants(asker, table.model, ["insert", "update"], { demand: "either" });
      const value = await body();
      const target = conflictColumn(table.model, conflictTarget);
      checkHasTarget(value, target);
      const options = { target, index: 0 };
      const upsert = (context: WriteContext) => mutations.upsert(context, grants, table, value, options);
      return writes.run(file, asker, upsert, { keep });
    },

    /** Updates a record. `condition`: `if` of the request, as text; null for none. */
    async update(
      principal: Principal,
      address: TableAddress,
      id: string,
      body: Body,
      options?: { condition: string | null; keep?: KeepAnswer<TableRecord> | undefined },
    ): Promise<TableRecord> {
      const { table, file, rules } = await sources.forReading(principal, address);
      const asker = { principal, rules };
      const grants = await writes.grants(asker, table.model, ["update"]);
      const patch = parsePatch(table.model, table.validator, await body());
      if (file === null) return missing(principal, address, grants, id);
      const condition = await conditions.ofText(asker, table.model, options?.condition ?? null);
      const update = (context: WriteContext) => mutations.update(context, grants, table, id, patch, { condition });
      return writes.run(file, asker, update, { keep: options?.keep });
    },

    /** Deletes a record. `checkForm` throws for a malformed request; called after the rights. */
    async delete(
      principal: Principal,
      address: TableAddress,
      id: string,
      options?: { condition: string | null; checkForm: () => unknown },
    ): Promise<void> {
      const { table, file, rules } = await sources.forReading(principal, address);
      const asker = { principal, rules };
      const grants = await writes.grants(asker, table.model, ["delete"]);
      options?.checkForm();
      if (file === null) return missing(principal, address, grants, id);
      const condition = await conditions.ofText(asker, table.model, options?.condition ?? null);
      const remove = () =>
        writes.run(file, asker, (context) => mutations.delete(context, grants, table, id, { condition }));
      try {
        await remove();
      } catch (cause) {
        if (!(cause instanceof CascadeTooLarge && mayDeleteInSteps(principal))) throw cause;
        await steps.clear(asker, file, table, id, { condition });
        await remove();
      }
    },
  };
}

/** Throws for a record of an instance that does not exist, as for a missing record. */
function missing(principal: Principal, address: TableAddress, grants: WriteGrants, id: string): never {
  const looksAtRecord = grants.update.kind === "record" || grants.delete.kind === "record";
  if (principal.kind === "anonymous" && looksAtRecord) throw denied(principal);
  throw notFound(`There is no record "${id}" in ${address.table}`);
}

function createTableBatches({
  sources,
  writes,
  mutations,
  steps,
  conditions,
  rights,
  turns,
}: WriteDeps & { rights: ReturnType<typeof createRecordRights>; turns: Scheduler }) {
  return {
    async batch(
      principal: Principal,
      address: TableAddress,
      body: Body<BatchBody>,
      {
        caller,
        keep,
        ...options
      }: { upsert: boolean; caller?: ReadCaller; keep?: KeepAnswer<BatchResult> | undefined },
    ): Promise<BatchResult> {
      const { table, file, rules } = await sources.forInserting(principal, address);
      const asker = { principal, rules };
      // A caller without any of these rights learns nothing about the form of its body.
      await writes.grants(asker, table.model, ["insert", "update", "delete"], { demand: "either", isBatch: true });
      const parsed = checkBatch(await body());
      const grants = await batchGrants(writes, asker, table, parsed, options);
      checkPatternCost(placedRecords(table, parsed));
      const change = (context: WriteContext) => runBatch(mutations, context, grants, table, parsed, options);
      const result = await writes.run(file, asker, change, {
        prepare: (auto) => prepareLarge(bodiesOf(table, parsed), auto, turns),
        keep,
      });
      // A large answer is sent in pieces, like large pages; there is no place to release.
      if (isLarge([...result.inserted, ...result.updated])) caller?.keepUntilSent?.(() => {});
      return result;
    },

    async batchByFilter(
      principal: Principal,
      address: TableAddress,
      body: Body<ByFilterBody>,
      { caller, keep }: { caller?: ReadCaller; keep?: KeepAnswer<ByFilterResult> | undefined } = {},
    ): Promise<ByFilterResult> {
      const { table, file, rules } = await sources.forReading(principal, address);
      const asker = { principal, rules };
      await writes.grants(asker, table.model, ["update", "delete"], { demand: "either" });
      const value = await body();
      const filters = [value.filter, value.orFilter];
      const parsed = parseByFilter(table, value, await conditions.find(asker, table.model, filters));
      const grants = await writes.grants(asker, table.model, [value.action]);
      if (file === null) return { processed: 0, succeeded: 0 };
      return runByFilter({ mutations, writes, steps, rights, caller, keep }, asker, grants, table, file, parsed);
    },
  };
}

/**
 * Returns the grants for the operations of a batch: of each kind its own, of upserts the insert or the update rule. Errors: 401,
 * 403.
 */
async function batchGrants(
  writes: Writes,
  asker: Asker,
  table: Table,
  body: Batch,
  options: { upsert: boolean },
): Promise<WriteGrants> {
  const changing = [
    ...(body.updates.length > 0 ? (["update"] as const) : []),
    ...(body.deletes.length > 0 ? (["delete"] as const) : []),
  ];
  const others = await writes.grants(asker, table.model, changing, { isBatch: true });
  if (body.inserts.length === 0) return others;
  const actions = options.upsert ? (["insert", "update"] as const) : (["insert"] as const);
  const demand = options.upsert ? "either" : "each";
  const inserting = await writes.grants(asker, table.model, actions, { demand, isBatch: true });
  const update = body.updates.length > 0 ? others.update : inserting.update;
  return { ...others, insert: inserting.insert, update };
}
