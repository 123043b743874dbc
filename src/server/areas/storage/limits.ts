import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Maximum bytes of one file in a bucket without `maxFileSize`. */
export const FILE_MAX_BYTES = 100 * 1024 * 1024;

export const KEY_MAX_BYTES = 1024;
export const CONTENT_TYPE_LENGTH_MAX = 255;
/** Maximum bytes of a file's custom metadata as JSON. */
export const METADATA_MAX_BYTES = 16 * 1024;

/** Maximum keys in one batch deletion. */
export const BATCH_DELETE_KEYS_MAX = 100;
export const SIGNED_URL_KEYS_MAX = 100;

export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1000;
/** Files examined per page when a rule hides most of them: the page is then shorter, and its cursor continues. */
export const LIST_SCAN_MAX = 5_000;
/** Files read per chunk when the rule is not evaluated for each file. */
export const LIST_SLIM_CHUNK = 250;
/** Files read per chunk when the rule is evaluated for each file: each may have 16 KiB of metadata. */
export const LIST_CHUNK = 50;

/** Maximum bytes of JSON bodies: 100 keys, the largest metadata, 10,000 parts with their etags, with escapes. */
export const KEYS_BODY_MAX_BYTES = 1024 * 1024;
export const METADATA_BODY_MAX_BYTES = 128 * 1024;
export const PARTS_BODY_MAX_BYTES = 2 * 1024 * 1024;

/** Lifetime of signed URLs. */
export const SIGNED_URL_DEFAULT_SECONDS = HOUR_MS / SECOND_MS;
export const SIGNED_URL_MAX_SECONDS = (7 * DAY_MS) / SECOND_MS;

/** Multipart uploads. */
export const PART_NUMBER_MAX = 10_000;
export const UPLOAD_TTL_MS = DAY_MS;
/** Maximum unfinished uploads per owner and bucket. */
export const UNFINISHED_UPLOADS_MAX = 1_000;

/** Unfinished uploads of all buckets that one page of administration lists and examines. */
export const UPLOADS_LISTED_DEFAULT = 50;
export const UPLOADS_LISTED_MAX = 200;
export const UPLOADS_SCAN_CHUNK = 250;
export const UPLOADS_SCAN_MAX = 5_000;

/** Lifetime of the receipts of idempotent uploads, and their maximum number per user, or for all service keys together. */
export const RECEIPT_TTL_MS = DAY_MS;
export const RECEIPTS_PER_OWNER_MAX = 2_000;

/** Maximum bytes of a form beside its file: headers of parts, the other fields, boundaries. */
export const FORM_OVERHEAD_MAX_BYTES = 1024 * 1024;
export const FORM_PARTS_MAX = 32;
/** Characters of the name of an unknown part that the error message repeats. */
export const FORM_NAME_SHOWN_LENGTH = 100;
export const FORM_FIELD_MAX_BYTES = 64 * 1024;

/** Bytes buffered before they are written to the disk. */
export const WRITE_BUFFER_BYTES = 512 * 1024;

/** Maximum attempts of a request whose file changes while an asynchronous rule is awaited. */
export const RULE_ATTEMPTS_MAX = 10;

export const SWEEP_INTERVAL_MS = DAY_MS;
/** Grace period of an object that no record names, so that a mistake can be noticed. */
export const SWEEP_REMOTE_GRACE_MS = DAY_MS;
/** Timeout of the start for an object store to report the owner of its prefix. */
export const CLAIM_TIMEOUT_MS = 5 * SECOND_MS;
/** Interval between removals of expired uploads and grants. */
export const EXPIRY_INTERVAL_MS = HOUR_MS;
/** Expired grants, or parts of ended uploads, removed per transaction. */
export const EXPIRY_STEP = 200;
/** Claims of records' files that are compared with the records in one step. */
export const COMPARE_STEP = 200;
/** Delay until new claims are confirmed together, which saves each upload a transaction. */
export const CONFIRM_DELAY_MS = 200;
/** New claims that wait to be confirmed. Further ones are left to the next sweep. */
export const CONFIRM_WAITING_MAX = 10_000;
/** Tries of the job that compares files with records, and the time of one. */
export const COMPARE_RETRIES = 20;
export const COMPARE_TIMEOUT_SECONDS = 60;
/** A sweep pauses after each directory that brings the number of examined files to this. */
export const SWEEP_STEP_FILES = 500;
export const SWEEP_PAUSE_MS = 20;

/** Default limit of megapixels. A decoded picture takes at least four bytes a pixel: one of the default size up to 160 MB. */
export const THUMB_SOURCE_MEGAPIXELS_DEFAULT = 32;
export const PIXELS_PER_MEGAPIXEL = 1024 * 1024;
/** Maximum pixels per side, as in a JPEG. Each row costs time beside its pixels: a PNG of 1 × 31,000,000 took seconds. */
export const THUMB_SOURCE_SIDE_MAX = 65_535;
/** Maximum scans of a JPEG. Each passes over all pixels, and takes less than a hundred bytes. Encoders write about ten. */
export const THUMB_SOURCE_SCANS_MAX = 100;
export const THUMB_SOURCE_MAX_BYTES = 64 * 1024 * 1024;
/**
 * Processor time to decode a picture of up to THUMB_SOURCE_MEGAPIXELS_DEFAULT; proportionally more when the config allows
 * larger ones. Checked every THUMB_PROCESSOR_CHECK_MS.
 */
export const THUMB_PROCESSOR_MS = 2 * SECOND_MS;
/** Additional processor time for each megapixel of the thumbnail. */
export const THUMB_PROCESSOR_MS_PER_MEGAPIXEL = 250;
export const THUMB_PROCESSOR_CHECK_MS = 50;
/** Allowed ratio of wall-clock time to processor time, for a machine that is busy with other things. */
export const THUMB_TIME_PER_PROCESSOR_TIME = 10;
/** Number of processes that decode pictures. With two or more, one caller leaves one for the others. */
export const THUMBS_AT_ONCE_DEFAULT = 2;
export const THUMBS_WAITING_MAX = 100;
export const THUMBS_WAIT_MS = 60 * SECOND_MS;
/** Idle time after which a process ends. */
export const THUMB_PROCESS_IDLE_MS = 30 * SECOND_MS;
/** Bytes of a picture per message to a process. */
export const THUMB_BLOCK_BYTES = 1024 * 1024;
/** Number of pictures remembered as too slow to decode, and how long they are not tried again. */
export const THUMBS_REFUSED_MAX = 1_000;
export const THUMBS_REFUSED_MS = 5 * MINUTE_MS;
/** Maximum attempts of a request whose picture is replaced while it waits to be decoded. */
export const REPLACED_ATTEMPTS_MAX = 10;

/** Files that a merge of two accounts gives to the one that stays: some milliseconds. */
export const MERGED_FILES_MAX = 1_000;
