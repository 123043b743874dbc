import type { JsonObject } from "../../kernel/json/json.ts";
import type { Method, QueryParameters, Transport } from "../transport/types.ts";
import type { FieldDeletion, Increment } from "../types/records.ts";
import type { TableAddress } from "./description.ts";

/** Adds `value`, 1 by default, to a number, however many clients do so at once. */
export const increment = (value = 1): Increment => ({ $op: "increment", value });

/** Clears a field. */
export const deleteField = (): FieldDeletion => ({ $op: "deleteField" });

/** One record of a write. `changes` may have the operators of `increment` and `deleteField`. */
export type WriteOperation =
  | { readonly type: "insert"; readonly record: JsonObject }
  | { readonly type: "update"; readonly id: string; readonly changes: JsonObject }
  | { readonly type: "upsert"; readonly record: JsonObject; readonly conflictTarget: string }
  | { readonly type: "delete"; readonly id: string };

/** What sends a write. It is plain data, which can be kept and sent later. */
export interface WriteRequest {
  readonly method: Method;
  readonly path: string;
  readonly query?: QueryParameters;
  readonly body?: JsonObject;
  /** The same each time that this write is sent; sent when somebody is signed in. null: the endpoint takes none. */
  readonly idempotencyKey: string | null;
}

/** A write whose records are known before it is done: insert, update, upsert, delete and batch. */
export interface TableWrite extends TableAddress {
  readonly operations: readonly WriteOperation[];
  readonly request: WriteRequest;
}

/** What was begun ends with one of them. */
export interface BegunWrite {
  /** With the server's answer. */
  confirm(answer: unknown): void;
  undo(error: unknown): void;
}

/** Hears of the writes of this client before they are sent. Live queries show them at once. */
export interface LocalWrites {
  /** true: new records get their ids here, so that they can be shown before the server has them. */
  readonly needsIds: boolean;
  begin(write: TableWrite): BegunWrite;
}

/** Nothing is shown before it is done. */
export const NO_LOCAL_WRITES: LocalWrites = {
  needsIds: false,
  begin: () => ({ confirm: () => {}, undo: () => {} }),
};

/** The records of an answer, in the order of the operations; null for a deleted one. */
export function recordsOf({ operations, request }: TableWrite, answer: unknown): (JsonObject | null)[] {
  // Answers of the server, which are not checked again.
  if (!request.path.endsWith("/batch")) return [request.method === "DELETE" ? null : (answer as JsonObject)];
  const { inserted, updated } = answer as { inserted: JsonObject[]; updated: JsonObject[] };
  return [...inserted, ...updated, ...operations.filter(({ type }) => type === "delete").map(() => null)];
}

/** Sends a write, and gives its answer. `signal` ends it, and the waits between its tries; default: nothing does. */
export const sendWrite = (
  { request }: Pick<Transport, "request">,
  { request: { method, path, query, body, idempotencyKey } }: TableWrite,
  signal?: AbortSignal,
): Promise<unknown> => request(method, path, { query, body, signal, idempotent: idempotencyKey ?? false });
