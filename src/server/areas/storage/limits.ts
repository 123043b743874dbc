import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";

/** Bytes of one file where the bucket has no `maxFileSize`. */
export const FILE_MAX_BYTES = 100 * 1024 * 1024;

export const KEY_MAX_BYTES = 1024;
export const CONTENT_TYPE_LENGTH_MAX = 255;
/** Of the JSON of a file's custom metadata. */
export const METADATA_MAX_BYTES = 16 * 1024;

/** Keys in one request. */
export const BATCH_DELETE_KEYS_MAX = 100;
export const SIGNED_URL_KEYS_MAX = 100;

export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1000;
/** Files that one page examines where a rule hides most of them: the page is shorter then, and its cursor continues. */
export const LIST_SCAN_MAX = 5_000;
/** Files read at once where the rule is not asked about each file. */
export const LIST_SLIM_CHUNK = 250;
/** Files read at once where the rule is asked about each file: each may have 16 KiB of metadata. */
export const LIST_CHUNK = 50;

/** JSON bodies of 100 keys, of the largest metadata, and of 10,000 parts with their etags, with escapes. */
export const KEYS_BODY_MAX_BYTES = 1024 * 1024;
export const METADATA_BODY_MAX_BYTES = 128 * 1024;
export const PARTS_BODY_MAX_BYTES = 2 * 1024 * 1024;

/** Lifetime of signed URLs. */
export const SIGNED_URL_DEFAULT_SECONDS = HOUR_MS / SECOND_MS;
export const SIGNED_URL_MAX_SECONDS = (7 * DAY_MS) / SECOND_MS;

/** Multipart uploads. */
export const PART_NUMBER_MAX = 10_000;
export const UPLOAD_TTL_MS = DAY_MS;
/** Unfinished uploads of one owner in one bucket. */
export const UNFINISHED_UPLOADS_MAX = 1_000;

/** Unfinished uploads that one page of administration lists, and examines, of all buckets. */
export const UPLOADS_LISTED_DEFAULT = 50;
export const UPLOADS_LISTED_MAX = 200;
export const UPLOADS_SCAN_CHUNK = 250;
export const UPLOADS_SCAN_MAX = 5_000;

/** How long the receipt of an upload that may be repeated is kept, and how many of one user, or of all service keys. */
export const RECEIPT_TTL_MS = DAY_MS;
export const RECEIPTS_PER_OWNER_MAX = 2_000;

/** Bytes of a form beside its file: headers of parts, the other fields, boundaries. */
export const FORM_OVERHEAD_MAX_BYTES = 1024 * 1024;
export const FORM_PARTS_MAX = 32;
/** Characters of the name of an unknown part that the answer repeats. */
export const FORM_NAME_SHOWN_LENGTH = 100;
export const FORM_FIELD_MAX_BYTES = 64 * 1024;

/** An upload is aborted when fewer than UPLOAD_MIN_BYTES arrive within UPLOAD_STALL_MS: slower than any mobile network. */
export const UPLOAD_STALL_MS = MINUTE_MS;
export const UPLOAD_MIN_BYTES = 16 * 1024;
/** Bytes collected before they are written to the disk. */
export const WRITE_BUFFER_BYTES = 512 * 1024;

/** Times a request starts over because the file changed while an asynchronous rule was asked about it. */
export const RULE_ATTEMPTS_MAX = 10;

export const SWEEP_INTERVAL_MS = DAY_MS;
/** How long an object that no record names stays, so that a mistake can be noticed. */
export const SWEEP_REMOTE_GRACE_MS = DAY_MS;
/** How long the start waits for an object store to answer whose its prefix is. */
export const CLAIM_TIMEOUT_MS = 5 * SECOND_MS;
/** How often expired uploads and expired grants are removed. */
export const EXPIRY_INTERVAL_MS = HOUR_MS;
/** Expired grants, or parts of ended uploads, that one write removes. */
export const EXPIRY_STEP = 200;
/** A sweep pauses after every directory that brings the files that it has examined to this number. */
export const SWEEP_STEP_FILES = 500;
export const SWEEP_PAUSE_MS = 20;

/** A picture is decoded to at least four bytes a pixel: one of the default size takes up to 160 MB. */
export const THUMB_SOURCE_MEGAPIXELS_DEFAULT = 32;
export const PIXELS_PER_MEGAPIXEL = 1024 * 1024;
/** What a JPEG can have at most. Each row costs time beside its pixels: a PNG of 1 × 31,000,000 took seconds. */
export const THUMB_SOURCE_SIDE_MAX = 65_535;
/** Scans of a JPEG: each passes over all pixels, and takes less than a hundred bytes. Encoders write about ten. */
export const THUMB_SOURCE_SCANS_MAX = 100;
export const THUMB_SOURCE_MAX_BYTES = 64 * 1024 * 1024;
/**
 * Processor time to decode a picture of up to THUMB_SOURCE_MEGAPIXELS_DEFAULT; more, in proportion, where the config allows larger
 * ones. Looked at every THUMB_PROCESSOR_CHECK_MS.
 */
export const THUMB_PROCESSOR_MS = 2 * SECOND_MS;
/** Further time for each megapixel of the thumbnail. */
export const THUMB_PROCESSOR_MS_PER_MEGAPIXEL = 250;
export const THUMB_PROCESSOR_CHECK_MS = 50;
/** How much longer it may take by the clock, on a machine that is busy with other things. */
export const THUMB_TIME_PER_PROCESSOR_TIME = 10;
/** Processes that decode pictures. Where there are two or more, one caller leaves one for the others. */
export const THUMBS_AT_ONCE_DEFAULT = 2;
export const THUMBS_WAITING_MAX = 100;
export const THUMBS_WAIT_MS = 60 * SECOND_MS;
/** A process without work ends after this time. */
export const THUMB_PROCESS_IDLE_MS = 30 * SECOND_MS;
/** Bytes of a picture that one message to a process takes along. */
export const THUMB_BLOCK_BYTES = 1024 * 1024;
/** How many pictures whose time was over are remembered, and for how long they are not tried again. */
export const THUMBS_REFUSED_MAX = 1_000;
export const THUMBS_REFUSED_MS = 5 * MINUTE_MS;
/** Times a request starts over because its picture was replaced while it waited for its turn to be decoded. */
export const REPLACED_ATTEMPTS_MAX = 10;
