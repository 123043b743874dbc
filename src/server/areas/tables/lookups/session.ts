import { AppError } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { REQUEST_LOOKUPS_MAX, SUBSCRIPTION_LOOKUPS_MAX } from "../../../access/lookups/limits.ts";
import type { LookupCall, Lookups, LookupWatch, RuleAddress } from "../../../access/lookups/lookups.ts";
import type { RuleContext } from "../../../config/types.ts";
import type { DatabaseFile, Transaction } from "../../../db/index.ts";
import { createFormerForms, type FormerForms } from "../dialect/former-forms.ts";
import { hasRelations, type ParsedFilter } from "../filters/filter.ts";
import { LOOKUP_RECORDS_MAX } from "../limits.ts";
import { isInstanceId } from "../model/model.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import type { RuleCall, RuleScope } from "./calls.ts";
import { createRecording, NOTHING_MADE, type Recording } from "./calls.ts";
import type { Queries } from "./lookup-source.ts";
import { relatedPlaces } from "./plan.ts";
import { createTableLookup, LookupMistake, type TableLookup } from "./table-lookup.ts";

/** A file that rules look into. */
interface LookupFile {
  address: RuleAddress;
  namespace: Namespace;
  /** The file; undefined before it was looked for, null when the instance does not exist. */
  file: DatabaseFile | null | undefined;
  tables: Map<string, CachedTable>;
}

interface CachedTable {
  table: Table;
  /** Lookup of calls that need no record of their lookups. */
  lookup: TableLookup | null;
  /** Version within the transaction, incremented by each change. Results of an earlier version are invalid. */
  version: number;
  results: Map<string, { version: number; value: unknown }>;
}

/** Creates the lookups of requests. */
export interface TableLookups extends Lookups {
  begin(options?: Parameters<Lookups["begin"]>[0]): LookupSession;
}

const nameOf = ({ namespace, instanceId }: RuleAddress): string =>
  instanceId === null ? namespace : `${namespace}/${instanceId}`;

interface SessionDeps {
  namespaces: ReadonlyMap<string, Namespace>;
  logger: Logger;
  former: FormerForms;
}

export function createTableLookups(deps: Omit<SessionDeps, "former"> & { former?: FormerForms }): TableLookups {
  const known = { ...deps, former: deps.former ?? createFormerForms(deps.logger) };
  return {
    begin: (options = {}) =>
      new LookupSession(known, {
        isRequest: options.for !== "subscription",
        watch: options.watch ?? null,
      }),
  };
}

export class LookupSession implements LookupCall {
  readonly #deps: SessionDeps;
  readonly #isRequest: boolean;
  readonly #watch: LookupWatch | null;
  readonly #files = new Map<string, LookupFile>();
  /** The write's own file and its transaction; null outside of a write. */
  #own: { name: string; tx: Transaction } | null = null;
  #count = 0;
  #recordCount = 0;
  /** Error of lookups that failed through no fault of the rule; null when none has. */
  #refusal: AppError | null = null;

  constructor(deps: SessionDeps, options: { isRequest: boolean; watch: LookupWatch | null }) {
    this.#deps = deps;
    this.#isRequest = options.isRequest;
    this.#watch = options.watch;
  }

  context(about: RuleAddress | null): RuleContext {
    return this.call(about).context;
  }

  check(): void {
    if (this.#refusal !== null && this.#isRequest) throw this.#refusal;
  }

  scope(about: RuleAddress): RuleScope {
    return {
      about,
      at: (namespace) => this.scope({ namespace, instanceId: null }),
      isWatched: this.#watch !== null,
      call: () => this.call(about),
      some: (table, filter) => this.#some(about, table, filter),
      lookedAt: (place) => this.#watch?.lookedAt({ ...about, ...place }),
      reopen: null,
      afresh: () => new LookupSession(this.#deps, { isRequest: true, watch: null }).scope(about),
      check: () => this.check(),
      inside: (tx, work) => this.#inside(about, tx, work),
    };
  }

  call(about: RuleAddress | null): RuleCall {
    // Only a write is repeated, and checks whether the lookups of an awaited rule still have the same results.
    const recording = this.#own === null ? null : createRecording();
    let hasLooked = false;
    const lookupOf = (address: RuleAddress, name: string): TableLookup => {
      hasLooked = true;
      const { file, cached } = this.#tableOf(address, name);
      if (recording !== null) return this.#lookup(file, cached, recording);
      cached.lookup ??= this.#lookup(file, cached, null);
      return cached.lookup;
    };
    return {
      context: {
        namespace: about?.namespace ?? null,
        instanceId: about?.instanceId ?? null,
        // Rules of changes get it with their record.
        sent: null,
        table: (name) => {
          if (about !== null) return lookupOf(about, name);
          throw new LookupMistake("context.table needs a namespace; use context.db(namespace).table(name)");
        },
        db: (namespace, instanceId) => ({
          table: (name) => lookupOf({ namespace, instanceId: instanceId ?? null }, name),
        }),
      },
      get hasLooked() {
        return hasLooked;
      },
      made: recording?.made ?? NOTHING_MADE,
      replay: (results) => recording?.replay(results),
    };
  }

  #some(about: RuleAddress, name: string, filter: ParsedFilter): boolean {
    const { file, cached } = this.#tableOf(about, name);
    // A result is valid as long as one table has not changed, and this one depends on others.
    if (hasRelations(filter)) cached.version += 1;
    return this.#lookup(file, cached, null).some(filter);
  }

  #lookup(file: LookupFile, cached: CachedTable, recording: Recording | null): TableLookup {
    const { address } = file;
    const name = cached.table.model.name;
    const once = <T>(key: string, read: (queries: Queries) => T): T => this.#once(file, cached, key, read);
    return createTableLookup({
      table: cached.table,
      once: recording === null ? once : recording.of(`${nameOf(address)}\n${name}\n`, once),
      watched: (fields, values) => this.#watch?.lookedAt({ ...address, table: name, fields, values }),
      related: (filter) => {
        // A result is valid as long as one table has not changed, and this one depends on others.
        cached.version += 1;
        for (const place of relatedPlaces(filter)) this.#watch?.lookedAt({ ...address, ...place });
      },
      took: (count) => this.#take(count),
      lookupOf: ({ namespace, name: table }) => {
        const place = namespace === address.namespace ? address : { namespace, instanceId: null };
        const found = this.#tableOf(place, table);
        return this.#lookup(found.file, found.cached, recording);
      },
      say: this.#deps.former.of(`${address.namespace}.${name}`),
    });
  }

  #fileOf(address: RuleAddress): LookupFile {
    const name = nameOf(address);
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const { namespace: namespaceName, instanceId } = address;
    const namespace = this.#deps.namespaces.get(namespaceName);
    if (namespace === undefined) throw new LookupMistake(`databases.${namespaceName} is not declared`);
    if ((namespace.kind === "dynamic") !== (instanceId !== null)) {
      const has = namespace.kind === "dynamic" ? "needs an" : "has no";
      throw new LookupMistake(`A lookup in databases.${namespaceName} ${has} instance id`);
    }
    const file: LookupFile = { address, namespace, file: undefined, tables: new Map() };
    this.#files.set(name, file);
    return file;
  }

  #tableOf(address: RuleAddress, name: string): { file: LookupFile; cached: CachedTable } {
    const file = this.#fileOf(address);
    const known = file.tables.get(name);
    if (known !== undefined) return { file, cached: known };
    const table = file.namespace.tables.get(name);
    if (table === undefined) throw new LookupMistake(`databases.${address.namespace} has no table "${name}"`);
    if (table.model.view !== null) {
      throw new LookupMistake(
        `databases.${address.namespace}.views.${name} takes no lookups: its SQL runs in another process. Look up its tables`,
      );
    }
    const cached: CachedTable = { table: table.full ?? table, lookup: null, version: 0, results: new Map() };
    file.tables.set(name, cached);
    return { file, cached };
  }

  /** Returns the result of an earlier lookup of this request, unless a change has made it invalid; else reads it. */
  #once<T>(file: LookupFile, cached: CachedTable, key: string, read: (queries: Queries) => T): T {
    const known = cached.results.get(key);
    // Results of this key have this type.
    if (known !== undefined && known.version === cached.version) return known.value as T;
    if (known === undefined) this.#count += 1;
    const countMax = this.#isRequest ? REQUEST_LOOKUPS_MAX : SUBSCRIPTION_LOOKUPS_MAX;
    if (this.#count > countMax) throw this.#refused(`The access rules made more than ${countMax} lookups`);
    let value: T;
    try {
      value = read(this.#queriesOf(file));
    } catch (cause) {
      if (cause instanceof AppError && cause.status >= 500) this.#refusal ??= cause;
      throw cause;
    }
    cached.results.set(key, { version: cached.version, value });
    return value;
  }

  #take(records: number): void {
    this.#recordCount += records;
    if (this.#recordCount <= LOOKUP_RECORDS_MAX) return;
    throw this.#refused(`The lookups of the access rules found more than ${LOOKUP_RECORDS_MAX} records`);
  }

  #refused(message: string): AppError {
    if (this.#refusal === null) {
      this.#refusal = new AppError(503, message);
      this.#deps.logger.error("access rules looked up too much", { cause: this.#refusal });
    }
    return this.#refusal;
  }

  #queriesOf(file: LookupFile): Queries {
    if (this.#own !== null && this.#own.name === nameOf(file.address)) return this.#own.tx;
    const { namespace, address } = file;
    if (file.file === undefined)
      file.file = namespace.kind === "static" ? namespace.file : existing(namespace, address);
    return file.file;
  }

  /** Invalidates all results: any file may have changed while a body or a rule was awaited. */
  #forgetAll(): void {
    for (const file of this.#files.values()) {
      file.file = undefined;
      for (const cached of file.tables.values()) cached.version += 1;
    }
    this.#recordCount = 0;
  }

  #inside<T>(about: RuleAddress, tx: Transaction, work: (tx: Transaction) => T): T {
    const name = nameOf(about);
    const forget = (): void => {
      for (const cached of this.#files.get(name)?.tables.values() ?? []) cached.version += 1;
    };
    const observed: Transaction = {
      query: (sql) => tx.query(sql),
      get changes() {
        return tx.changes;
      },
      indexText: (table, id, length) => tx.indexText(table, id, length),
      change: (change) => {
        const changed = this.#files.get(name)?.tables.get(change.table);
        if (changed !== undefined) changed.version += 1;
        tx.change(change);
      },
      enqueue: (row) => tx.enqueue(row),
      audit: (about) => tx.audit(about),
      auditBy: (actor, change) => tx.auditBy(actor, change),
      causedBy: (actor) => tx.causedBy(actor),
      get cause() {
        return tx.cause;
      },
      savepoint: (part) => {
        try {
          return tx.savepoint(part);
        } catch (cause) {
          forget();
          throw cause;
        }
      },
    };
    this.#forgetAll();
    this.#own = { name, tx };
    try {
      return work(observed);
    } finally {
      this.#own = null;
      forget();
    }
  }
}

/** Returns the file of an instance without creating it; null when the instance does not exist. */
function existing(namespace: Namespace & { kind: "dynamic" }, { instanceId }: RuleAddress): DatabaseFile | null {
  if (instanceId === null || !isInstanceId(instanceId)) return null;
  return namespace.instances.get(instanceId, { create: false });
}
