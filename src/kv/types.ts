import type { JsonValue } from "../kernel/json.ts";

/** A request's body, checked. Spec: Native resource endpoints. */
export type KeyValueAction =
  | { action: "get"; key: string }
  | { action: "set"; key: string; value: JsonValue; ttlSeconds: number | null }
  | { action: "delete"; key: string }
  | { action: "list"; query: KeyQuery };

/** Keys after `after` that begin with `prefix`; `after` null: from the first. */
export interface KeyQuery {
  prefix: string;
  limit: number;
  after: string | null;
}

export interface KeyPage {
  keys: string[];
  /** Opaque; null on the last page. */
  cursor: string | null;
}
