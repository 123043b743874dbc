import type { JsonObject, JsonValue } from "../kernel/json.ts";
import type { MaybePromise, OrNothing } from "../kernel/maybe-promise.ts";
import type { AppAccess } from "./app-access.ts";
import type { RoomsConfig } from "./room-types.ts";

/** Who asks, as access rules see it; null without a token. Decisions 3. */
export interface Auth {
  id: string;
  /** What the user has typed in: whose it is, `emailVerified` says. */
  email: string | null;
  /** Whether the user has proved that the address is theirs. A rule that trusts `email` asks for it. */
  emailVerified: boolean;
  /** The user's present role, not the token's. */
  role: string;
  isAnonymous: boolean;
  /** The custom claims of the token. */
  custom: JsonObject;
}

/** A table record as rules, hooks and `app` see it: every declared field is there, null where it has no value. */
export interface TableRecord {
  [field: string]: JsonValue;
}

export type FilterOperator = "==" | "!=" | ">" | ">=" | "<" | "<=" | "contains" | "in" | "not in";

/** `[field, operator, value]`. Spec: Filter tuple. */
export type FilterTuple = readonly [field: string, operator: FilterOperator, value: JsonValue | readonly JsonValue[]];

/** Tuples combine with AND; an empty filter keeps everything. */
export type Filter = readonly FilterTuple[];

/** `true` and a filter allow; every other value, and a throw, denies. Decisions 3. */
export type Rule =
  | boolean
  | ((auth: Auth | null, record: TableRecord, next: TableRecord) => MaybePromise<boolean | Filter>);

export type FieldType = "string" | "text" | "number" | "integer" | "boolean" | "datetime" | "json";

export interface Reference {
  table: string;
  /** The column referred to; `id` by default, else a unique field. */
  column?: string;
  /** What happens to this record when the other one is deleted; `restrict` by default. */
  onDelete?: "restrict" | "cascade" | "set null";
}

export interface Field {
  type: FieldType;
  required?: boolean;
  default?: JsonValue;
  unique?: boolean;
  /** Length in characters for text, value for numbers. */
  min?: number;
  max?: number;
  /** A regular expression that the whole or a part of the text must match. */
  pattern?: string | RegExp;
  enum?: readonly (string | number)[];
  references?: string | Reference;
  /** An SQL expression over the fields of the record, kept as a CHECK of the table. */
  check?: string;
  /** A datetime field that takes the time of each change. */
  onUpdate?: "now";
}

export interface FullTextSearch {
  fields: readonly string[];
  tokenize?: "unicode61" | "trigram" | "porter";
}

export interface Index {
  fields: readonly string[];
  unique?: boolean;
}

export interface TableAccess {
  read?: Rule;
  insert?: Rule;
  update?: Rule;
  delete?: Rule;
  /**
   * Which rule an upsert needs. `matching`: the one that fits what happens, insert for a new record, update for a stored one.
   * `either`: the insert rule or the update rule. Unset: `either` where `auth` alone decides both, else `matching`.
   */
  upsert?: "either" | "matching";
}

/** `before*` run inside the write and may replace what is written or throw; `after*` run once it is on disk. Decisions 4. */
export interface TableHooks {
  beforeInsert?: (auth: Auth | null, record: TableRecord, app: AppAccess) => MaybePromise<OrNothing<TableRecord>>;
  beforeUpdate?: (
    auth: Auth | null,
    record: TableRecord,
    changes: TableRecord,
    app: AppAccess,
  ) => MaybePromise<OrNothing<TableRecord>>;
  beforeDelete?: (auth: Auth | null, record: TableRecord, app: AppAccess) => MaybePromise<void>;
  afterInsert?: (record: TableRecord, app: AppAccess) => MaybePromise<void>;
  afterUpdate?: (record: TableRecord, before: TableRecord, app: AppAccess) => MaybePromise<void>;
  afterDelete?: (record: TableRecord, app: AppAccess) => MaybePromise<void>;
}

export interface Migration {
  version: number;
  description: string;
  /** SQL; several statements are allowed. */
  up: string;
}

export interface TableConfig {
  /** Absent: schemaless. `false` switches off `createdAt` or `updatedAt`. */
  schema?: { [field: string]: Field | false };
  fts?: readonly string[] | FullTextSearch;
  indexes?: readonly Index[];
  /** Bytes of JSON of one record; 1 MiB by default, at most 10 MiB. */
  maxRecordSize?: number;
  access?: TableAccess;
  hooks?: TableHooks;
  migrations?: readonly Migration[];
}

type InstanceRule = boolean | ((auth: Auth | null, instanceId: string) => MaybePromise<boolean>);

export interface NamespaceConfig {
  /** true: dynamic, one file per instance id. */
  instance?: boolean;
  /** Dynamic namespaces only; absent means denied, and a service key passes. */
  access?: { create?: InstanceRule; open?: InstanceRule };
  tables: { [table: string]: TableConfig };
}

/** A file as bucket rules see it; the last three are there for stored files only. Decisions 13. */
export interface FileFacts {
  key: string;
  size: number;
  contentType: string;
  uploadedBy?: string | null;
  customMetadata?: { [key: string]: string };
  /** ISO 8601 */
  uploaded?: string;
}

export type BucketRule = boolean | ((auth: Auth | null, file: FileFacts) => MaybePromise<boolean>);

export interface BucketConfig {
  /** Bytes; 100 MiB by default. Binds every way of uploading. */
  maxFileSize?: number;
  access?: { read?: BucketRule; write?: BucketRule; delete?: BucketRule };
  /** Serve files of every type inline, HTML and SVG too, instead of as attachments. false by default. */
  inline?: boolean;
  /** Sizes that `?thumb=` takes, e.g. `["200x200"]`. None by default. */
  thumbs?: readonly string[];
  /** Where the bytes lie; the data directory by default. */
  backend?: { s3: ObjectStore };
}

export interface StorageConfig {
  buckets: { [bucket: string]: BucketConfig };
  /** How thumbnails are made. A pixel takes up to five bytes of memory meanwhile: 160 MB by default. */
  thumbs?: {
    /** Pictures decoded at the same time; 1 by default, up to 16. */
    atOnce?: number;
    /** Of the picture that a thumbnail is made of; 32 by default, up to 256. */
    maxMegapixels?: number;
  };
}

/** A bucket of an S3-compatible object store. */
export interface ObjectStore {
  endpoint: string;
  bucket: string;
  region?: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** What the names of objects begin with; nothing by default. */
  prefix?: string;
}

/** Backups that the server makes by itself while it runs. */
export interface BackupsConfig {
  /** When, in UTC: a cron expression of five fields, or a nickname such as `@daily`. */
  schedule: string;
  /** The newest that stay; older ones are deleted after each success. */
  keep: number;
  /** A folder on this machine, best on another disk, or an object store. No other server's backups may go there. */
  to: { folder: string } | { s3: ObjectStore };
}

export interface OAuthProvider {
  clientId: string;
  clientSecret: string;
  /** An OpenID Connect issuer; known for `google`, `github`, … by name. */
  issuer?: string;
  scopes?: readonly string[];
}

export interface MailTemplate {
  subject: string;
  /** Plain text; `{{link}}`, `{{code}}`, `{{email}}` are replaced. */
  text: string;
  html?: string;
}

export interface AuthConfig {
  emailPassword?: boolean;
  anonymous?: boolean;
  magicLink?: boolean;
  emailOtp?: boolean;
  mfa?: { totp?: boolean };
  session?: {
    /** Seconds; 900 by default. */
    accessTokenTtl?: number;
    /** Seconds; 28 days by default. */
    refreshTokenTtl?: number;
    /** 0 by default: no limit. The oldest session ends. */
    maxActive?: number;
  };
  password?: { /** Characters; 8 by default. */ minLength?: number };
  oauth?: { [provider: string]: OAuthProvider };
  passkeys?: { rpName: string; rpId: string; origin: string };
  /** What links in mail and OAuth may lead to. A trailing `*` matches the rest. */
  redirectUrls?: readonly string[];
  /** None: messages are written to `<data>/outbox` and logged. */
  mail?: {
    smtp?: { host: string; port: number; user?: string; pass?: string; secure?: boolean };
    from?: string;
    templates?: {
      verification?: MailTemplate;
      passwordReset?: MailTemplate;
      magicLink?: MailTemplate;
      emailOtp?: MailTemplate;
      emailChange?: MailTemplate;
    };
  };
  captcha?: { siteKey: string };
}

export type VectorMetric = "cosine" | "euclidean" | "dot-product";

export interface RealtimeConfig {
  access?: {
    /** To listen (`event` is empty then) and to send. Absent: any signed-in user. */
    broadcast?: boolean | ((auth: Auth, channel: string, event: string) => MaybePromise<boolean>);
    /** To listen and to be tracked. Absent: any signed-in user. */
    presence?: boolean | ((auth: Auth, channel: string) => MaybePromise<boolean>);
  };
  /** Milliseconds; 5000 by default. */
  authTimeout?: number;
  /** Connections of one address that have not authenticated yet; 50 by default. Further ones wait up to 2 s for a place. */
  pendingPerAddress?: number;
  /** Milliseconds; 60000 by default. */
  presenceTtl?: number;
  /** Changes of one channel by one request from which they arrive as one message; 10 by default. */
  batchThreshold?: number;
  /** Messages per second and connection; 100 by default. */
  messageRate?: number;
}

export interface PushConfig {
  fcm?: {
    projectId: string;
    /** The service account's JSON, or the path of its file, from where the server is started. */
    serviceAccount: string | { client_email: string; private_key: string; [other: string]: string };
    /** Base URL before `/v1/projects/…/messages:send`; Google's by default. */
    endpoint?: string;
    /** The whole URL; Google's by default. */
    tokenEndpoint?: string;
  };
  /** `subject` is a `mailto:` or `https:` address; the keys are VAPID keys in base64url. */
  webPush?: { subject: string; publicKey: string; privateKey: string };
}

/** The groups that decisions 13 names. */
export type RateLimitGroup = "global" | "auth" | "signin" | "signup" | "events";

export interface RateLimit {
  requests: number;
  /** Seconds. */
  window: number;
}

export interface ServiceKeyConfig {
  key: string;
  /** Four parts, `*` for any. Absent: every right. Decisions 3. */
  scopes?: readonly string[];
  /** ISO 8601 */
  expiresAt?: string;
  /** Addresses or CIDR ranges. */
  ips?: readonly string[];
}

/** Everything a platform serves. Defaults stand beside the members; decisions 2. */
export interface PlatformConfig {
  server?: {
    /** The address that links in mail and signed URLs begin with. */
    publicUrl?: string;
    /** true: the client's address is taken from `X-Forwarded-For`. false by default. */
    trustProxy?: boolean;
    /** Bytes of a JSON body; 10 MiB by default. */
    maxBodySize?: number;
  };
  cors?: {
    /** `"*"` by default. */
    origin?: string | readonly string[];
    credentials?: boolean;
    /** Seconds; 600 by default. */
    maxAge?: number;
  };
  databases?: { [namespace: string]: NamespaceConfig };
  storage?: StorageConfig;
  auth?: AuthConfig;
  kv?: { [namespace: string]: Record<string, never> };
  d1?: { [database: string]: Record<string, never> };
  vectorize?: { [index: string]: { dimensions: number; metric?: VectorMetric } };
  rooms?: RoomsConfig;
  realtime?: RealtimeConfig;
  push?: PushConfig;
  analytics?: { /** true by default. */ requestLog?: boolean };
  /** None by default. */
  backups?: BackupsConfig;
  rateLimits?: { [group in RateLimitGroup]?: RateLimit };
  serviceKeys?: { [name: string]: ServiceKeyConfig };
  api?: {
    /** false by default: 404. */
    schemaEndpoint?: boolean | "authenticated";
    /** `/swagger`; true by default. */
    docs?: boolean;
  };
}
