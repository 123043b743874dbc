/** Characters of a name that a config declares: a namespace, a bucket, a table, a field. */
export const NAME_LENGTH_MAX = 64;
/** SQLite's limit of columns per table. */
export const COLUMNS_MAX = 2_000;
/** The maximum of `maxRecordSize`: the default maximum of a body. */
export const RECORD_SIZE_MAX_BYTES = 10 * 1024 * 1024;
/** The minimum of `quota.perInstance`: an instance without records has some pages for each table. */
export const INSTANCE_QUOTA_MIN_BYTES = 64 * 1024;
/** The maximum of a room's `maxStateSize`. */
export const ROOM_STATE_MAX_BYTES = 10 * 1024 * 1024;
/** The limit of sqlite-vec. */
export const VECTOR_DIMENSIONS_MAX = 8_192;
/** The maximum width and height of a thumbnail. */
export const THUMB_PIXELS_MAX = 4_096;
export const THUMBS_AT_ONCE_MAX = 16;
export const THUMB_MEGAPIXELS_MAX = 256;
/** The maximum number of backups that a schedule keeps. */
export const KEEP_MAX = 10_000;
/** The bounds of `backups.continuous`. */
export const CONTINUOUS_EVERY_MIN_MS = 250;
export const CONTINUOUS_EVERY_MAX_MS = 60_000;
export const CONTINUOUS_KEEP_DAYS_MAX = 3_650;
export const CONTINUOUS_PENDING_MIN_BYTES = 1_000_000;
/** The maximum of `minLength` of passwords: hashing reads no more bytes. */
export const PASSWORD_LENGTH_MAX = 1_024;
/** The maximum of `auth.tokens.rotateDays`: ten years. */
export const ROTATE_DAYS_MAX = 3_650;
export const PORT_MAX = 65_535;
/** The maximum number of chained proxies whose entries of `X-Forwarded-For` are examined. */
export const PROXY_HOPS_MAX = 20;
/** Entries of a `trustProxy` list: a content delivery network lists some dozens. */
export const PROXY_RANGES_MAX = 500;
/** Characters of a host name. */
export const DOMAIN_LENGTH_MAX = 253;
/** Names of one certificate: as many as Let's Encrypt allows. */
export const DOMAINS_MAX = 100;
/** The longest duration of a config. Added to the current time, it is still a valid date. */
export const DURATION_MAX_SECONDS = 100 * 365 * 24 * 60 * 60;
/** The maxima of `retries`, `timeout` and `concurrency` of jobs. */
export const JOB_RETRIES_MAX = 1_000;
export const JOB_TIMEOUT_MAX_SECONDS = 24 * 60 * 60;
export const JOB_CONCURRENCY_MAX = 100;

/** The minimum length of a service key. A shorter one could be guessed: wrong keys from many addresses are not counted. */
export const SERVICE_KEY_LENGTH_MIN = 20;
export const JWT_SECRET_MIN_BYTES = 32;
/** The minimum size of a Standard Webhooks secret, in bytes. */
export const WEBHOOK_SECRET_MIN_BYTES = 24;
export const WEBHOOK_SECRET_MAX_BYTES = 64;

/** The timeout to load a config, which may fetch its secrets from other services, with some retries. */
export const LOAD_MAX_MS = 30_000;
/** The maximum number of watched files; of a config that imports more, the first ones are watched. */
export const FILES_MAX = 1_000;

/** Repetitions of a unit in the texts against which a pattern is tested. */
export const PATTERN_REPEATS_MAX = 36;
/** The time for one of these short texts from which a pattern counts as slow: others need a few microseconds. */
export const PATTERN_MAX_MS = 10;

/** Characters of an invalid value that a message quotes. */
export const SHOWN_LENGTH_MAX = 40;

/** The files that one field of a record may have. */
export const FILES_PER_FIELD_MAX = 100;

/** Bytes of the logo of the pages for signing in. */
export const LOGO_MAX_BYTES = 256 * 1024;
/** Texts that the function of `embed` gets at once. */
export const EMBEDDED_AT_ONCE_MAX = 128;
