import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import type { Filter, TableRecord } from "./records.ts";

export interface ListQuery {
  filter?: Filter;
  orFilter?: Filter;
  /** `field:asc`, `field:desc`, comma-separated. */
  sort?: string;
  limit?: number;
  offset?: number;
  after?: string;
  before?: string;
}

export interface ListResult {
  items: TableRecord[];
  total: number | null;
  page: number | null;
  perPage: number | null;
  hasMore: boolean | null;
  cursor: string | null;
}

export interface BatchOperations {
  inserts?: readonly TableRecord[];
  updates?: readonly { id: string; data: TableRecord }[];
  deletes?: readonly string[];
}

export interface BatchResult {
  inserted: TableRecord[];
  updated: TableRecord[];
  deleted: { id: string }[];
}

/** A table without its rules: validation and limits apply, and the calling code checks rights. */
export interface TableAccessor {
  /** null when there is no such record. */
  get(id: string): Promise<TableRecord | null>;
  list(query?: ListQuery): Promise<ListResult>;
  count(query?: Pick<ListQuery, "filter" | "orFilter">): Promise<number>;
  search(q: string, query?: Pick<ListQuery, "filter" | "orFilter" | "sort" | "limit" | "offset">): Promise<ListResult>;
  insert(record: TableRecord): Promise<TableRecord>;
  upsert(record: TableRecord, options?: { conflictTarget?: string }): Promise<TableRecord>;
  update(id: string, changes: TableRecord): Promise<TableRecord>;
  delete(id: string): Promise<void>;
  batch(operations: BatchOperations): Promise<BatchResult>;
}

export interface DatabaseAccessor {
  table(name: string): TableAccessor;
}

export interface StoredFile {
  key: string;
  size: number;
  httpMetadata: { contentType: string };
  customMetadata: { [key: string]: string };
  uploaded: string;
}

export interface BucketAccessor {
  put(
    key: string,
    bytes: Uint8Array | Blob,
    options?: { contentType?: string; metadata?: { [key: string]: string } },
  ): Promise<StoredFile>;
  /** null when there is no such file. */
  get(key: string): Promise<Blob | null>;
  head(key: string): Promise<StoredFile | null>;
  delete(key: string): Promise<boolean>;
  list(options?: { prefix?: string; limit?: number; cursor?: string }): Promise<{
    objects: { key: string; size: number; uploaded: string }[];
    truncated: boolean;
    cursor: string | null;
  }>;
}

export interface KeyValueAccessor {
  /** null when missing or expired. */
  get(key: string): Promise<JsonValue>;
  set(key: string, value: JsonValue, options?: { /** Seconds. */ ttl?: number }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string;
  }): Promise<{ keys: string[]; cursor: string | null }>;
}

export interface SqlAccessor {
  query(
    sql: string,
    params?: readonly JsonValue[],
  ): Promise<{ results: JsonObject[]; meta: { changes: number; rows_read: number; duration: number } }>;
}

export interface VectorAccessor {
  upsert(vectors: readonly { id: string; values: readonly number[]; metadata?: JsonObject }[]): Promise<number>;
  search(
    vector: readonly number[],
    options?: { topK?: number; filter?: JsonObject; returnValues?: boolean },
  ): Promise<{ id: string; score: number; metadata: JsonObject; values?: number[] }[]>;
  delete(ids: readonly string[]): Promise<number>;
}

export interface UserSummary {
  id: string;
  email: string | null;
  displayName: string | null;
  role: string;
  createdAt: string;
}

export interface UsersAccessor {
  /** null when there is no such user. */
  get(id: string): Promise<UserSummary | null>;
}

export type PushPlatform = "android" | "ios" | "web";

/** Members of both kinds of message. */
export type PushOptions = {
  /** The address of a picture. */
  image?: string;
  sound?: string;
  /** The number on the app's icon (iOS). */
  badge?: number;
  /** Values other than strings arrive as JSON. */
  data?: JsonObject;
  /** A device that was offline gets only the last message of each collapseId. */
  collapseId?: string;
  /** Seconds for which the provider keeps the message for an offline device; four weeks at most. */
  ttl?: number;
  /** Raw members of the FCM message, which override all others. */
  fcm?: JsonObject;
};

/** A notification. With `silent` nothing is shown, and the app gets only `data`. */
export type PushMessage = PushOptions &
  ({ title: string; body: string; silent?: boolean } | { silent: true; title?: string; body?: string });

export interface PushDevice {
  /** The deviceId of the registration. */
  id: string;
  token: string;
  platform: PushPlatform;
  metadata: JsonObject;
  createdAt: string;
}

/** Push notifications. Errors: 503 when neither FCM nor Web Push is configured. */
export interface PushAccessor {
  /** Sends to every device of the user, and resolves when all have been tried; `{ sent: 0, failed: 0 }` when there is none. */
  send(userId: string, message: PushMessage): Promise<{ sent: number; failed: number }>;
  sendMany(userIds: readonly string[], message: PushMessage): Promise<{ sent: number; failed: number }>;
  /** Sends to a token, registered or not; `platform` is `web` by default. */
  sendToToken(
    token: string,
    message: PushMessage,
    options?: { platform?: PushPlatform },
  ): Promise<{ sent: number; failed: number }>;
  /** Resolves when the message is queued. */
  sendToTopic(topic: string, message: PushMessage): Promise<void>;
  broadcast(message: PushMessage): Promise<void>;
  devices(userId: string): Promise<PushDevice[]>;
  /** Replaces the metadata; 16 KB of JSON at most. Errors: 404. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>;
}

/** The server's own access to its areas, for hooks, rooms and embedders. It passes all rules. */
export interface AppAccess {
  db(namespace: string, instanceId?: string): DatabaseAccessor;
  storage(bucket: string): BucketAccessor;
  kv(name: string): KeyValueAccessor;
  sql(name: string): SqlAccessor;
  vectors(name: string): VectorAccessor;
  broadcast(channel: string, event: string, payload: JsonObject): Promise<void>;
  readonly push: PushAccessor;
  readonly users: UsersAccessor;
}
