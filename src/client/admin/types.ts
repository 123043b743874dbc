import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";

export interface KeyValue {
  /** null when missing or expired. */
  get<T = JsonValue>(key: string): Promise<T | null>;
  /** `ttl` in seconds; without it the key stays. */
  set(key: string, value: JsonValue, options?: { ttl?: number }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ keys: string[]; cursor: string | null }>;
}

export interface Sql {
  /** One statement; `?` are bound in order. `signal` ends a read. */
  query<Row = JsonObject>(
    sql: string,
    params?: readonly (string | number | boolean | null)[],
    options?: { signal?: AbortSignal },
  ): Promise<{ results: Row[]; meta: { changes: number; rows_read: number; duration: number } }>;
}

/** What the config says of a bucket, and what is used of its quota. All sizes are bytes. */
export interface BucketDescription {
  name: string;
  /** Its files are in an object store. */
  external: boolean;
  /** In a drill. */
  readOnly: boolean;
  /** Files of every type are shown in browsers: `true` in a sandbox, `"sameOrigin"` as pages of the server's origin. */
  inline: boolean | "sameOrigin";
  maxFileSize: number;
  /** Such as `200x200`. */
  thumbs: string[];
  /** null: not limited. */
  quota: { total: number | null; perUser: number | null; used: number } | null;
}

export interface UnfinishedUpload {
  uploadId: string;
  key: string;
  contentType: string;
  /** A user; null: a service key. */
  ownerId: string | null;
  /** Those that have arrived, and their bytes. */
  parts: number;
  size: number;
  createdAt: string;
  expiresAt: string;
}

export interface AdminBuckets {
  describe(bucket: string): Promise<BucketDescription>;
  /** Newest first. */
  uploads(
    bucket: string,
    options?: { limit?: number; cursor?: string | null },
  ): Promise<{ items: UnfinishedUpload[]; cursor: string | null }>;
  /** Ends an unfinished upload and removes its parts. Errors: `not_found`. */
  abort(bucket: string, upload: Pick<UnfinishedUpload, "uploadId" | "key">): Promise<void>;
}

export interface Vector {
  id: string;
  values: readonly number[];
  metadata?: JsonObject;
}

export interface VectorMatch {
  id: string;
  score: number;
  metadata: JsonObject;
  values?: number[];
}

export interface Vectors {
  /** Gives how many were stored. */
  upsert(vectors: readonly Vector[]): Promise<number>;
  /** The nearest first. */
  search(
    vector: readonly number[],
    options?: { topK?: number; filter?: JsonObject; returnValues?: boolean },
  ): Promise<VectorMatch[]>;
  get(ids: readonly string[]): Promise<Required<Vector>[]>;
  /** By id, without values. */
  list(options?: { prefix?: string; limit?: number; cursor?: string | null }): Promise<{
    items: { id: string; metadata: JsonObject }[];
    cursor: string | null;
  }>;
  /** Gives how many there were. */
  delete(ids: readonly string[]): Promise<number>;
  describe(): Promise<{ vectorCount: number; dimensions: number; metric: string }>;
}

/** A notification; with `silent` nothing is shown, and the app gets only `data`. */
export interface PushMessage {
  title?: string;
  body?: string;
  silent?: boolean;
  image?: string;
  sound?: string;
  badge?: number;
  data?: JsonObject;
  collapseId?: string;
  /** Seconds. */
  ttl?: number;
  /** Raw members of an FCM message. */
  fcm?: JsonObject;
}

interface Counts {
  sent: number;
  failed: number;
}

export interface AdminPush {
  /** Errors: `not_found` for a user without devices. */
  send(userId: string, message: PushMessage): Promise<Counts>;
  sendMany(userIds: readonly string[], message: PushMessage): Promise<Counts>;
  sendToToken(token: string, message: PushMessage, options?: { platform?: PushPlatform }): Promise<Counts>;
  /** Resolves when the message is queued. */
  sendToTopic(topic: string, message: PushMessage): Promise<void>;
  /** To all devices. Resolves when the message is queued. */
  broadcast(message: PushMessage): Promise<void>;
  devices(userId: string): Promise<{ id: string; token: string; platform: string; createdAt: string }[]>;
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>;
  /** Devices of everybody, or those that fulfil all of these, newest first. */
  listDevices(options?: {
    userId?: string;
    token?: string;
    platform?: PushPlatform;
    topic?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: PushDevice[]; cursor: string | null }>;
  /** By name. */
  topics(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: { topic: string; devices: number }[]; cursor: string | null }>;
  /** What was sent in the last day, newest first. */
  logs(options?: {
    userId?: string;
    status?: PushLog["status"];
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: PushLog[]; cursor: string | null }>;
}

export type PushPlatform = "android" | "ios" | "web";

export interface PushDevice {
  /** Among those of the user. */
  id: string;
  userId: string;
  token: string;
  platform: PushPlatform;
  metadata: JsonObject;
  topics: string[];
  createdAt: string;
  /** The latest registration. */
  registeredAt: string;
}

export interface PushLog {
  id: string;
  userId: string | null;
  status: "sent" | "failed" | "removed";
  platform: string;
  title: string | null;
  body: string | null;
  timestamp: string | number;
  error: string | null;
}

export type JobState = "waiting" | "running" | "done" | "failed";

export interface JobRecord {
  id: string;
  name: string;
  state: JobState;
  /** `drill`: it waits because the server is a drill, in which no job runs. */
  waitingFor: "drill" | null;
  /** The tries that have begun. */
  attempt: number;
  data: JsonValue;
  /** Of the latest try that failed. */
  error: string | null;
  /** Of a webhook: what its receiver answered to the latest try that had an answer, with the beginning of the body. */
  answer: { status: number; contentType: string | null; body: string; isCut: boolean } | null;
  createdAt: string;
  dueAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

export interface ScheduleRecord {
  /** Of its jobs: `cron:NAME`. */
  name: string;
  schedule: string;
  timezone: string;
  /** The next 5 runs; none in a drill. */
  next: string[];
  lastAt: string | null;
}

export interface AdminJobs {
  /** Newest first. */
  list(options?: {
    name?: string;
    state?: JobState;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: JobRecord[]; cursor: string | null }>;
  /** Errors: `conflict` for a job that has not failed. */
  retry(id: string): Promise<void>;
  cancel(id: string): Promise<void>;
  schedules(): Promise<ScheduleRecord[]>;
  /** Runs a schedule now; gives the id of its job, or of the one that waits or runs. Errors: `not_found`. */
  runSchedule(name: string): Promise<string>;
  /** Runs a waiting job now. */
  runNow(id: string): Promise<void>;
}

export interface InstanceEntry {
  id: string;
  bytes: number;
  createdAt: string;
  /** The last write, or a little later. */
  writtenAt: string;
}

export interface Instances {
  /** In order of their ids. */
  list(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ items: InstanceEntry[]; cursor: string | null }>;
  /** With all of its records. */
  delete(id: string): Promise<void>;
}

export interface Backup {
  name: string;
  createdAt: string;
  /** Bytes. */
  size: number;
  /** When it last held; null: unknown. */
  verifiedAt: string | null;
  /** It did not hold when it was made, and is kept all the same. */
  failed: boolean;
}

/** A backup that is made, or verified, since the start of the server. */
export interface BackupRun {
  id: string;
  action: "create" | "verify";
  /** The name of the backup, once it has one. */
  backup: string | null;
  state: "waiting" | "running" | "done" | "failed";
  startedAt: string | null;
  endedAt: string | null;
  /** Why it has failed: of a verification, everything that was found. */
  error: string | null;
  files: number | null;
  contentBytes: number | null;
  /** Those that were checked; null: the backup was not verified. */
  databases: number | null;
}

export interface BackupList {
  /** Where they are stored, in words. */
  place: string;
  /** null without a schedule. */
  schedule: string | null;
  /** The newest backups that are kept. */
  keep: number;
  /** Newest first. */
  backups: Backup[];
  /** Newest first. */
  runs: BackupRun[];
}

export interface AdminBackups {
  list(): Promise<BackupList>;
  /**
   * Makes a backup, and resolves when it is stored. The end of `signal` ends the wait only. Errors: `conflict` while one is made
   * or verified, `unavailable` in a drill, `internal` where it fails.
   */
  create(options?: { signal?: AbortSignal }): Promise<BackupRun & { backup: string }>;
  /** Restores it into a scratch folder and checks everything: `state` is `done` if it holds, else `failed`. Errors: as `create`. */
  verify(name: string, options?: { signal?: AbortSignal }): Promise<BackupRun>;
  /** An address with which a browser downloads it, once, within a minute. */
  link(name: string): Promise<string>;
  /** Its bytes. Errors: `not_found`. */
  download(name: string, options?: { signal?: AbortSignal }): Promise<ReadableStream<Uint8Array>>;
}
