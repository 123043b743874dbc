import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { orNull } from "../transport/errors.ts";
import type { Cancellable } from "../types/query.ts";
import { type Condition, everything, type TableAddress, tablePath } from "./description.ts";
import { TableQuery } from "./query.ts";
import { newRecordId } from "./record-id.ts";
import { performWrite } from "./writes.ts";

interface GetOptions extends Cancellable {
  fields?: readonly string[];
  expand?: readonly string[];
}
interface ConditionOptions {
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

/** A query of all records, whose `update` and `delete` are those of one record. */
export type AnyTable = Omit<TableQuery, "update" | "delete"> & ReturnType<typeof recordsOf>;

export const createTable = (context: ClientContext, address: TableAddress): AnyTable =>
  Object.assign(new TableQuery(context, everything(address)), recordsOf(context, address));

/** What a table does with single records. */
function recordsOf(context: ClientContext, address: TableAddress) {
  const path = tablePath(address);
  const at = (id: string) => `${path}/${encodeURIComponent(id)}`;
  const identified = (record: JsonObject): JsonObject =>
    context.writes.needsIds && record["id"] == null ? { ...record, id: newRecordId(context.runtime) } : record;

  return {
    async get(id: string, { fields = [], expand = [], signal }: GetOptions = {}): Promise<JsonObject | null> {
      // No id either, and refused without a text to search for.
      if (id === "search") return null;
      const query = { fields: fields.join() || null, expand: expand.join() || null };
      const record = await orNull(context.transport.request<JsonObject>("GET", at(id), { query, signal }));
      // What is no id, such as "" or "count", leads to something else of the table.
      return record?.["id"] === String(id) ? record : null;
    },

    insert(given: JsonObject): Promise<JsonObject> {
      const record = identified(given);
      const operations = [{ type: "insert", record }] as const;
      const request = { method: "POST", path, body: record } as const;
      return performWrite(context, { address, operations, request });
    },

    update(id: string, changes: JsonObject, options: ConditionOptions = {}): Promise<JsonObject> {
      const operations = [{ type: "update", id, changes }] as const;
      const request = { method: "PATCH", path: at(id), query: parametersOf(options), body: changes } as const;
      return performWrite(context, { address, operations, request });
    },

    upsert(record: JsonObject, { conflictTarget = "id" }: { conflictTarget?: string } = {}): Promise<JsonObject> {
      const operations = [{ type: "upsert", record, conflictTarget }] as const;
      const request = { method: "POST", path, query: { upsert: true, conflictTarget }, body: record } as const;
      return performWrite(context, { address, operations, request });
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
