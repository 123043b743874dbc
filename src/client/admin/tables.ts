import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import type { Transport } from "../transport/types.ts";

/** A table, of an instance where its namespace has them. */
export interface TableName {
  namespace: string;
  instanceId?: string | undefined;
  table: string;
}

export interface TableSize {
  rows: number;
  /** About, without indexes. */
  bytes: number;
  /** Of the file, which has all tables of the namespace or instance. */
  fileBytes: number;
}

export type RuleOperation = "read" | "insert" | "update" | "delete";
type RuleName = "open" | "create" | RuleOperation;

/** What a rule looked up. */
export interface TriedLookup {
  rule: RuleName;
  namespace: string;
  instanceId: string | null;
  table: string;
  method: "get" | "first" | "list" | "exists";
  /** Of `get`. */
  id: string | null;
  /** As JSON, cut after 1,000 characters. */
  filter: string | null;
  /** Records; of `exists` 1 where there is one. */
  found: number;
  ms: number;
  error: string | null;
}

/** What the rules of a table say to one operation on a record. */
export interface TriedRule {
  operation: RuleOperation;
  allowed: boolean;
  /** Of the answer to such a request, as far as rules decide it. */
  status: number;
  /** The rule that decided: update and delete are 404 for a record that the read rule hides. */
  decidedBy: RuleName;
  /** Its source; null: there is none, which denies. */
  rule: string | null;
  /** The filter that it returned, or whether it allows. */
  answer: JsonValue;
  /** At most 200. */
  lookups: TriedLookup[];
  /** All of them. */
  lookupCount: number;
  ms: number;
  /** Why the rule failed, which denies. */
  error: string | null;
}

export interface AdminTables {
  /** Nothing is counted: it takes the same time for any table. Errors: `not_found`. */
  size(table: TableName): Promise<TableSize>;
  /**
   * Which rule allows or denies operations on one record to a user, or to `anonymous`. Nothing is written. `id`: a stored record;
   * `record`: one that does not exist; `data`: the changes of an update. All four operations by default. Needs the root key.
   */
  tryRules(
    table: TableName,
    trial: { as: string; operations?: readonly RuleOperation[] | undefined; data?: JsonObject | undefined } & (
      | { id: string }
      | { record: JsonObject }
    ),
  ): Promise<TriedRule[]>;
}

export const createAdminTables = ({ request }: Transport): AdminTables => ({
  size({ namespace, instanceId, table }) {
    const path = [namespace, table].map(encodeURIComponent).join("/");
    return request("GET", `/api/admin/tables/${path}/size`, { query: { instanceId } });
  },
  async tryRules({ namespace, instanceId, table }, trial) {
    const body = { namespace, instanceId, table, ...trial };
    return (await request<{ results: TriedRule[] }>("POST", "/api/admin/rules/try", { body })).results;
  },
});
