import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

/** Table of a namespace; `instanceId` is needed where the namespace has instances. */
export interface TableName {
  namespace: string;
  instanceId?: string | undefined;
  table: string;
}

export interface TableSize {
  rows: number;
  /** Approximate size in bytes, without indexes. */
  bytes: number;
  /** Size of the file in bytes. The file holds all tables of the namespace or instance. */
  fileBytes: number;
}

/** A field by which records refer to one. */
export interface Referrer {
  namespace: string;
  /** null: the namespace has no instances. */
  instanceId: string | null;
  table: string;
  field: string;
  /** Number of records; no more than 1,000 are counted. */
  records: number;
}

export type RuleOperation = "read" | "insert" | "update" | "delete";
type RuleName = "open" | "create" | RuleOperation;

/** Lookup that a rule made. */
export interface TriedLookup {
  rule: RuleName;
  namespace: string;
  instanceId: string | null;
  table: string;
  method: "get" | "first" | "list" | "exists";
  /** Id passed to `get`; null for other methods. */
  id: string | null;
  /** Filter as JSON, cut after 1,000 characters. */
  filter: string | null;
  /** Number of records found; `exists` counts at most 1. */
  found: number;
  ms: number;
  error: string | null;
}

/** Result of a table's rules for one operation on a record. */
export interface TriedRule {
  operation: RuleOperation;
  allowed: boolean;
  /** Status of the response to such a request, as far as rules decide it. */
  status: number;
  /** Name of the deciding rule. The read rule decides updates and deletes of a record it hides: they are 404. */
  decidedBy: RuleName;
  /** Source of the rule; null: the table has none, which denies. */
  rule: string | null;
  /** Filter that the rule returned, or whether it allows. */
  answer: JsonValue;
  /** Lookups, at most 200. */
  lookups: TriedLookup[];
  /** Number of all lookups. */
  lookupCount: number;
  ms: number;
  /** Why the rule threw, which denies; null if it did not. */
  error: string | null;
}

export interface AdminTables {
  /** Returns the size of a table. No rows are counted, so it takes the same time for any table. Errors: `not_found`. */
  size(table: TableName): Promise<TableSize>;
  /**
   * Counts the records that refer to one, by field, in its file and in others, in tables that the key may read. Instances of other
   * namespaces follow by id: continue with `cursor` until it is null. Errors: `not_found`.
   */
  referrers(
    table: TableName,
    id: string,
    options?: { cursor?: string | undefined },
  ): Promise<{ items: Referrer[]; cursor: string | null }>;
  /**
   * Returns which rules allow or deny operations on one record to a user, or to `anonymous`. Nothing is written. `id`: a stored
   * record; `record`: one that does not exist; `data`: the changes of an update. All four operations by default. Needs the root
   * key.
   */
  tryRules(
    table: TableName,
    trial: { as: string; operations?: readonly RuleOperation[] | undefined; data?: JsonObject | undefined } & (
      | { id: string }
      | { record: JsonObject }
    ),
  ): Promise<TriedRule[]>;
}

const pathOf = ({ namespace, table }: TableName): string =>
  `/api/admin/tables/${[namespace, table].map(encodeURIComponent).join("/")}`;

export const createAdminTables = ({ request }: Transport): AdminTables => ({
  size: (table) => request("GET", `${pathOf(table)}/size`, { query: { instanceId: table.instanceId } }),
  referrers: (table, id, { cursor } = {}) =>
    request("GET", `${pathOf(table)}/referrers`, { query: { id, instanceId: table.instanceId, cursor } }),
  async tryRules({ namespace, instanceId, table }, trial) {
    const body = { namespace, instanceId, table, ...trial };
    return (await request<{ results: TriedRule[] }>("POST", "/api/admin/rules/try", { body })).results;
  },
});
