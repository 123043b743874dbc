import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { later } from "../later.ts";
import type { Runtime } from "../runtime.ts";
import { orNull } from "../transport/errors.ts";
import { jsonOf } from "../transport/send.ts";
import type { Cancellable } from "../types/query.ts";
import { type Condition, databasePath, everything, type TableAddress, tablePath } from "./description.ts";
import type { FormOptions } from "./forms.ts";
import { TableQuery } from "./query.ts";
import { type FilePart, filesIn, type TableWrite, type WriteOperation, type WriteRequest } from "./writes.ts";

const TIME_DIGITS = 12;

/** Returns a UUID of version 7, like those of the server: ids of later records are greater. */
function newRecordId(runtime: Pick<Runtime, "now" | "uuid">): string {
  const time = runtime.now().toString(16).padStart(TIME_DIGITS, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${runtime.uuid().slice(15)}`;
}

interface GetOptions extends Cancellable {
  fields?: readonly string[];
  expand?: readonly string[];
  signFiles?: number;
}
interface ConditionOptions extends FormOptions {
  if?: readonly Condition[];
}
interface Batch {
  inserts?: readonly JsonObject[];
  updates?: readonly { id: string; data: JsonObject }[];
  deletes?: readonly string[];
}
interface BatchResult {
  inserted: JsonObject[];
  updated: JsonObject[];
  deleted: { id: string }[];
}

/** Query of all records, whose `update` and `delete` affect single records. */
type AnyTable = Omit<TableQuery, "update" | "delete"> & ReturnType<typeof recordsOf>;

const createTable = (context: ClientContext, address: TableAddress): AnyTable =>
  Object.assign(new TableQuery(context, everything(address)), recordsOf(context, address));

/** Creates the single-record operations of a table. */
function recordsOf(context: ClientContext, address: TableAddress) {
  const path = tablePath(address);
  const at = (id: string) => `${path}/${encodeURIComponent(id)}`;
  const identified = (record: JsonObject): JsonObject =>
    context.writes.needsIds && record["id"] == null ? { ...record, id: newRecordId(context.runtime) } : record;

  return {
    async get(
      id: string,
      { fields = [], expand = [], signFiles, signal }: GetOptions = {},
    ): Promise<JsonObject | null> {
      // A search without a text is refused, and "search" is no id either.
      if (id === "search") return null;
      const query = { fields: fields.join() || null, expand: expand.join() || null, signFiles };
      const record = await orNull(context.transport.request<JsonObject>("GET", at(id), { query, signal }));
      // Texts that are not ids, such as "" or "count", address other endpoints of the table.
      return record?.["id"] === String(id) ? record : null;
    },

    insert(given: JsonObject, options?: FormOptions): Promise<JsonObject> {
      const record = identified(given);
      const operations = [{ type: "insert", record }] as const;
      const request = { method: "POST", path, body: record } as const;
      return performWrite(context, { address, operations, request, options });
    },

    update(id: string, changes: JsonObject, options: ConditionOptions = {}): Promise<JsonObject> {
      const operations = [{ type: "update", id, changes }] as const;
      const request = { method: "PATCH", path: at(id), query: parametersOf(options), body: changes } as const;
      return performWrite(context, { address, operations, request, options });
    },

    upsert(
      record: JsonObject,
      { conflictTarget = "id", ...options }: FormOptions & { conflictTarget?: string } = {},
    ): Promise<JsonObject> {
      const operations = [{ type: "upsert", record, conflictTarget }] as const;
      const request = { method: "POST", path, query: { upsert: true, conflictTarget }, body: record } as const;
      return performWrite(context, { address, operations, request, options });
    },

    async delete(id: string, options: ConditionOptions = {}): Promise<void> {
      const operations = [{ type: "delete", id }] as const;
      const request = { method: "DELETE", path: at(id), query: parametersOf(options) } as const;
      await performWrite(context, { address, operations, request });
    },

    batch(given: Batch, { upsert = false }: { upsert?: boolean } = {}): Promise<BatchResult> {
      const { updates = [], deletes = [] } = given;
      const inserts = (given.inserts ?? []).map(identified);
      const operations = [
        ...inserts.map((record) =>
          upsert ? ({ type: "upsert", record, conflictTarget: "id" } as const) : ({ type: "insert", record } as const),
        ),
        ...updates.map(({ id, data }) => ({ type: "update", id, changes: data }) as const),
        ...deletes.map((id) => ({ type: "delete", id }) as const),
      ];
      const query = upsert ? { upsert } : {};
      const body = { inserts, updates: [...updates], deletes: [...deletes] };
      const request = { method: "POST", path: `${path}/batch`, query, body } as const;
      return performWrite(context, { address, operations, request });
    },
  };
}

const parametersOf = (options: ConditionOptions) =>
  options.if === undefined ? {} : { if: JSON.stringify(options.if) };

interface Write {
  address: TableAddress;
  operations: readonly WriteOperation[];
  request: Omit<WriteRequest, "idempotencyKey">;
  options?: FormOptions | undefined;
}

/** Announces a write to its observers, sends it, and reports its outcome. */
async function performWrite<Answer>(
  context: ClientContext,
  { address, operations, request, options }: Write,
): Promise<Answer> {
  const keyed = { ...request, idempotencyKey: request.method === "DELETE" ? null : context.runtime.uuid() };
  // A JSON copy, because queues and overlays outlive the call, and IndexedDB refuses reactive objects.
  const write: TableWrite = JSON.parse(jsonOf({ ...address, operations, request: keyed }));
  // Taken now, like the copy, which has no files.
  const files = filesIn(request.body);
  const deliver = files.length === 0 ? context.deliver : await formOf(context, write, files, options);
  const begun = context.writes.begin(write);
  try {
    // Responses are not validated again.
    const answer = (await deliver(write)) as Answer;
    begun.confirm(answer);
    return answer;
  } catch (error) {
    begun.undo(error);
    throw error;
  }
}

/** Code for files is loaded with the first one. */
const formOf = async (
  context: ClientContext,
  write: TableWrite,
  files: readonly FilePart[],
  options: FormOptions | undefined,
) => (await later()).formOf(context, write, files, options);

/** `Database` of any namespace. The types of `client.db` add the tables of each one. */
export interface AnyDatabase {
  table(name: string): AnyTable;
  transaction(operations: readonly JsonObject[]): Promise<JsonObject[]>;
}

export const createDatabase = (
  context: ClientContext,
  namespace: string,
  instance: string | null = null,
): AnyDatabase => ({
  table: (name) => createTable(context, { namespace, instance, table: name }),
  async transaction(operations) {
    const path = `${databasePath({ namespace, instance })}/transaction`;
    const options = { body: { operations }, idempotent: true };
    return (await context.transport.request<{ results: JsonObject[] }>("POST", path, options)).results;
  },
});
