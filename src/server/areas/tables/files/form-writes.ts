import type { Clock } from "../../../../kernel/clock.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { RecordFiles } from "../../../access/record-files.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import type { Sources } from "../query/sources.ts";
import type { Table } from "../records/namespaces.ts";
import type { Asker } from "../rules/access.ts";
import type { WriteGrants } from "../write/asking.ts";
import { parsePatch } from "../write/changes.ts";
import type { createConditions } from "../write/conditions.ts";
import type { Mutations } from "../write/mutations.ts";
import { preparedRecord } from "../write/record-writes.ts";
import { checkHasTarget, conflictColumn } from "../write/upserts.ts";
import { NOT_PREPARED, type Prepared, type WriteContext } from "../write/write-context.ts";
import type { KeepAnswer, Writes } from "../write/writes.ts";
import type { RecordForm } from "./form.ts";
import { baseOf, type NewFiles, NO_FILES } from "./values.ts";

/** A request with a form. */
export interface FormRequest {
  principal: Principal;
  form: RecordForm;
  /** Throws for unknown query parameters; called after the rights. */
  checkForm(): unknown;
}

interface Source {
  table: Table;
  file: DatabaseFile;
  asker: Asker;
}

type Change<T> = (context: WriteContext) => T;

interface Writing<T> {
  changeOf: (body: JsonObject) => Change<T>;
  keep?: KeepAnswer<T> | undefined;
  /** Checks the record's JSON where no rule has to be asked about it. Absent: the change is tried. */
  check?: ((body: JsonObject) => void) | undefined;
}

/** Writes of records with their files. The order of checks is that of writes without, and files come last. */
export function createFormWrites(deps: {
  sources: Sources;
  writes: Writes;
  mutations: Mutations;
  conditions: Pick<ReturnType<typeof createConditions>, "ofText">;
  files: () => RecordFiles;
  clock: Clock;
}) {
  const { sources, writes, mutations, conditions } = deps;

  /**
   * Reads the form, and writes. `changeOf` returns the change for the record's JSON, and throws for a form that is wrong; the change
   * is tried without the files before the first of them is received. [TB722]
   */
  const withFiles = <T>(
    { principal, form }: FormRequest,
    address: TableAddress,
    { table, file, asker }: Source,
    { changeOf, keep, check }: Writing<T>,
  ): Promise<T> => {
    const { namespace, instanceId } = address;
    const ownerId = principal.kind === "user" ? principal.auth.id : null;
    const prepare = (prepared: Partial<Prepared>) => ({ prepare: () => ({ ...NOT_PREPARED, ...prepared }) });
    return deps.files().upload({ namespace, instanceId, ownerId }, async (upload) => {
      const received = await form.read(table.model, upload, async (body) => {
        if (check !== undefined) check(body);
        else await writes.run(file, asker, changeOf(body), prepare({ isTrial: true }));
      });
      const change = changeOf(received.body);
      await upload.store();
      const files: NewFiles = received.files.size === 0 ? NO_FILES : { base: baseOf(address), byField: received.files };
      return writes.run(file, asker, change, { ...prepare({ files }), keep });
    });
  };

  return {
    async insertForm(
      request: FormRequest,
      address: TableAddress,
      keep?: KeepAnswer<TableRecord>,
    ): Promise<TableRecord> {
      const { source, grants } = await inserting(sources, request, address, (asker, { model }) =>
        writes.grants(asker, model, ["insert"]),
      );
      const changeOf = (body: JsonObject) => (context: WriteContext) =>
        mutations.insert(context, grants, source.table, body, 0);
      const isDecided = grants.insert.kind === "all" && grants.insert.again === null;
      // The id and the time do not matter for this.
      const auto = { id: "new", now: new Date(deps.clock.now()).toISOString() };
      const check = (body: JsonObject) =>
        void preparedRecord(request.principal, source.table, body, auto, { files: NO_FILES, isTrial: true });
      return withFiles(request, address, source, { changeOf, keep, check: isDecided ? check : undefined });
    },

    async upsertForm(
      request: FormRequest,
      address: TableAddress,
      {
        conflictTarget,
        keep,
      }: { conflictTarget: string; keep?: KeepAnswer<ReturnType<Mutations["upsert"]>> | undefined },
    ) {
      const { source, grants } = await inserting(sources, request, address, (asker, { model }) =>
        writes.grants(asker, model, ["insert", "update"], { demand: "either" }),
      );
      const { table } = source;
      const target = conflictColumn(table.model, conflictTarget);
      const changeOf = (body: JsonObject) => {
        checkHasTarget(body, target);
        return (context: WriteContext) => mutations.upsert(context, grants, table, body, { target, index: 0 });
      };
      return withFiles(request, address, source, { changeOf, keep });
    },

    /** `missing` throws for a record of an instance that does not exist. */
    async updateForm(
      request: FormRequest,
      address: TableAddress,
      id: string,
      options: {
        condition: string | null;
        keep?: KeepAnswer<TableRecord> | undefined;
        missing: (grants: WriteGrants) => never;
      },
    ): Promise<TableRecord> {
      const { principal } = request;
      const { table, file, rules } = await sources.forReading(principal, address);
      const asker = { principal, rules };
      const grants = await writes.grants(asker, table.model, ["update"]);
      request.checkForm();
      if (file === null) return options.missing(grants);
      const condition = await conditions.ofText(asker, table.model, options.condition);
      const changeOf = (body: JsonObject) => {
        const patch = parsePatch(table.model, table.validator, body);
        return (context: WriteContext) => mutations.update(context, grants, table, id, patch, { condition });
      };
      return withFiles(request, address, { table, file, asker }, { changeOf, keep: options.keep });
    },
  };
}

/** Finds the source of an insert and its grants, and checks the form of the request. */
const inserting = (
  sources: Sources,
  request: FormRequest,
  address: TableAddress,
  grantsOf: (asker: Asker, table: Table) => MaybePromise<WriteGrants>,
) =>
  chain(sources.forInserting(request.principal, address), ({ table, file, rules }) => {
    const asker = { principal: request.principal, rules };
    return chain(grantsOf(asker, table), (grants) => {
      request.checkForm();
      return { source: { table, file, asker }, grants };
    });
  });
