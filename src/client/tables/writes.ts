import type { JsonObject } from "../../kernel/json/json.ts";
import type { Method, QueryParameters, Transport } from "../transport/types.ts";
import type { FieldDeletion, Increment } from "../types/records.ts";
import type { TableAddress } from "./description.ts";

/** Adds `value` (default: 1) to a number, atomically. */
export const increment = (value = 1): Increment => ({ $op: "increment", value });

/** Clears a field. */
export const deleteField = (): FieldDeletion => ({ $op: "deleteField" });

/** A file of a record to write, and its field. */
export type FilePart = readonly [field: string, file: Blob];

/** Returns the files among the values of a record, and in their lists. */
export const filesIn = (record: JsonObject = {}): FilePart[] =>
  Object.entries(record).flatMap(([name, value]) =>
    [value].flat().flatMap((one: unknown): FilePart[] => (one instanceof Blob ? [[name, one]] : [])),
  );

/** Write of one record. `changes` may have the operators of `increment` and `deleteField`. */
export type WriteOperation =
  | { readonly type: "insert"; readonly record: JsonObject }
  | { readonly type: "update"; readonly id: string; readonly changes: JsonObject }
  | { readonly type: "upsert"; readonly record: JsonObject; readonly conflictTarget: string }
  | { readonly type: "delete"; readonly id: string };

/** Request of a write, as plain data that can be stored and sent later. */
export interface WriteRequest {
  readonly method: Method;
  readonly path: string;
  readonly query?: QueryParameters;
  readonly body?: JsonObject;
  /** Idempotency key, equal in all attempts; sent when somebody is signed in. null: the endpoint takes none. */
  readonly idempotencyKey: string | null;
}

/** Write whose records are known in advance: insert, update, upsert, delete and batch. */
export interface TableWrite extends TableAddress {
  readonly operations: readonly WriteOperation[];
  readonly request: WriteRequest;
}

/** Announced write, which ends with one of these calls. */
export interface BegunWrite {
  /** Confirms the write with the server's response. */
  confirm(answer: unknown): void;
  undo(error: unknown): void;
}

/** Observer of this client's writes before they are sent. Live queries show them at once. */
export interface LocalWrites {
  /** Whether new records get their ids here, so that they can be shown before the server has them. */
  readonly needsIds: boolean;
  begin(write: TableWrite): BegunWrite;
}

/** Observer that shows nothing before a write is done. */
export const NO_LOCAL_WRITES: LocalWrites = {
  needsIds: false,
  begin: () => ({ confirm: () => {}, undo: () => {} }),
};

/** Returns the records of a response, in the order of the operations; null for a deleted one. */
export function recordsOf({ operations, request }: TableWrite, answer: unknown): (JsonObject | null)[] {
  // Responses are not validated again.
  if (!request.path.endsWith("/batch")) return [request.method === "DELETE" ? null : (answer as JsonObject)];
  const { inserted, updated } = answer as { inserted: JsonObject[]; updated: JsonObject[] };
  return [...inserted, ...updated, ...operations.filter(({ type }) => type === "delete").map(() => null)];
}

/** Sends a write, and returns its response. `signal` aborts it, including the waits between attempts; default: none. */
export const sendWrite = (
  { request }: Pick<Transport, "request">,
  { request: { method, path, query, body, idempotencyKey } }: TableWrite,
  signal?: AbortSignal,
): Promise<unknown> => request(method, path, { query, body, signal, idempotent: idempotencyKey ?? false });
