/** Characters of a name that a config declares: a namespace, a bucket, a table, a field. */
export const NAME_LENGTH_MAX = 64;
/** SQLite's own limit of columns per table. */
export const COLUMNS_MAX = 2_000;
/** What `maxRecordSize` may be: as much as a body may have by default. */
export const RECORD_SIZE_MAX_BYTES = 10 * 1024 * 1024;
/** The least `quota.perInstance`: an instance without records has some pages for each table. */
export const INSTANCE_QUOTA_MIN_BYTES = 64 * 1024;
/** What `maxStateSize` of a room may be. */
export const ROOM_STATE_MAX_BYTES = 10 * 1024 * 1024;
/** sqlite-vec's own limit. */
export const VECTOR_DIMENSIONS_MAX = 8_192;
/** Width and height of a thumbnail. */
export const THUMB_PIXELS_MAX = 4_096;
export const THUMBS_AT_ONCE_MAX = 16;
export const THUMB_MEGAPIXELS_MAX = 256;
/** Backups that a schedule may keep. */
export const KEEP_MAX = 10_000;
/** What `minLength` of passwords may be: hashing reads no more bytes. */
export const PASSWORD_LENGTH_MAX = 1_024;
export const PORT_MAX = 65_535;
/** Proxies, one behind another, whose entries of `X-Forwarded-For` are looked at. */
export const PROXY_HOPS_MAX = 20;
/** Entries of a `trustProxy` list: a content delivery network names some dozens. */
export const PROXY_RANGES_MAX = 500;
/** Characters of a host name. */
export const DOMAIN_LENGTH_MAX = 253;
/** Names of one certificate: as many as Let's Encrypt allows. */
export const DOMAINS_MAX = 100;
/** The longest duration of a config. Added to the present time it still is a valid date. */
export const DURATION_MAX_SECONDS = 100 * 365 * 24 * 60 * 60;
/** What `retries`, `timeout` and `concurrency` of jobs may be. */
export const JOB_RETRIES_MAX = 1_000;
export const JOB_TIMEOUT_MAX_SECONDS = 24 * 60 * 60;
export const JOB_CONCURRENCY_MAX = 100;

/** Characters of a service key. A shorter one could be guessed: wrong keys from many addresses are not counted. */
export const SERVICE_KEY_LENGTH_MIN = 20;
export const JWT_SECRET_MIN_BYTES = 32;
/** Bytes of a secret of Standard Webhooks. */
export const WEBHOOK_SECRET_MIN_BYTES = 24;
export const WEBHOOK_SECRET_MAX_BYTES = 64;

/** A config may fetch its secrets from other services, with some retries. */
export const LOAD_MAX_MS = 30_000;
/** Files of one config that are watched; of a config that imports more, the first ones are. */
export const FILES_MAX = 1_000;

/** Repetitions of a unit in the texts that a pattern is tried with. */
export const PATTERN_REPEATS_MAX = 36;
/** A pattern that takes longer for one of these short texts is slow: others need a few microseconds. */
export const PATTERN_MAX_MS = 10;

/** Characters of a wrong value that a message repeats. */
export const SHOWN_LENGTH_MAX = 40;
