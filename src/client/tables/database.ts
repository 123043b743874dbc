import type { JsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { databasePath } from "./description.ts";
import { type AnyTable, createTable } from "./table.ts";

/** `Database` of any namespace: the types of `client.db` say what each one has. */
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
