import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../kernel/duration.ts";

/** Bytes of one file where the bucket says nothing. Decisions 2. */
export const FILE_MAX_BYTES = 100 * 1024 * 1024;

export const KEY_MAX_BYTES = 1024;
export const CONTENT_TYPE_LENGTH_MAX = 255;
/** JSON of a file's custom metadata, as for users. */
export const METADATA_MAX_BYTES = 16 * 1024;

/** Spec: Limits / Tables and storage. */
export const BATCH_DELETE_KEYS_MAX = 100;
export const SIGNED_URL_KEYS_MAX = 100;

export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1000;
/** Files that one page looks at when a rule hides most of them; the page is shorter then, and its cursor leads on. */
export const LIST_SCAN_MAX = 5_000;
/** Files read at once where no rule is asked about each. */
export const LIST_SLIM_CHUNK = 250;
/** Files read at once, with up to 16 KiB of metadata each, where a rule is asked about each. */
export const LIST_CHUNK = 50;

/** JSON bodies of up to 100 keys, of the largest metadata, and of 10,000 parts with their etags, escapes included. */
export const KEYS_BODY_MAX_BYTES = 1024 * 1024;
export const METADATA_BODY_MAX_BYTES = 128 * 1024;
export const PARTS_BODY_MAX_BYTES = 2 * 1024 * 1024;

/** Signed URLs. Decisions 13. */
export const SIGNED_URL_DEFAULT_SECONDS = HOUR_MS / SECOND_MS;
export const SIGNED_URL_MAX_SECONDS = (7 * DAY_MS) / SECOND_MS;

/** Multipart uploads. Decisions 13. */
export const PART_NUMBER_MAX = 10_000;
export const UPLOAD_TTL_MS = DAY_MS;
/** Unfinished uploads of one owner in one bucket. */
export const UNFINISHED_UPLOADS_MAX = 1_000;

/** What a form may hold beside its file: part headers, the other fields, boundaries. */
export const FORM_OVERHEAD_MAX_BYTES = 1024 * 1024;
export const FORM_PARTS_MAX = 32;
/** Of one part's header; a longer one is read to here. */
export const FORM_HEADER_MAX_BYTES = 8 * 1024;
export const FORM_HEADER_LINES_MAX = 16;
/** Characters of an unknown part's name that the answer repeats. */
export const FORM_NAME_SHOWN_LENGTH = 100;
export const FORM_FIELD_MAX_BYTES = 64 * 1024;

/** A body of which less than this arrives within so long is given up: slower than the slowest telephone. */
export const UPLOAD_STALL_MS = MINUTE_MS;
export const UPLOAD_MIN_BYTES = 16 * 1024;
/** Bytes gathered before they go to the disk. */
export const WRITE_BUFFER_BYTES = 512 * 1024;

/** Between a file's end and its unlink, so that an answer that has just named it can open it. */
export const UNLINK_DELAY_MS = SECOND_MS;
/** Times a write starts over because the file changed while an asynchronous rule looked at it. */
export const WRITE_ATTEMPTS_MAX = 10;

export const SWEEP_INTERVAL_MS = DAY_MS;
/** An object that no record names stays so long: whoever put it there by mistake has the time to notice. */
export const SWEEP_REMOTE_GRACE_MS = DAY_MS;
/** How long a start waits for an object store to say whose its prefix is. */
export const CLAIM_TIMEOUT_MS = 5 * SECOND_MS;
/** How often unfinished uploads and used-up grants are looked for. */
export const EXPIRY_INTERVAL_MS = HOUR_MS;
/** Expired grants, or parts of uploads that have ended, removed by one write. */
export const EXPIRY_STEP = 200;
/** A sweep pauses after the directory in which it has looked at so many files. */
export const SWEEP_STEP_FILES = 500;
export const SWEEP_PAUSE_MS = 20;

/** Thumbnails: the source's pixels are decoded at four bytes each and more, so this bounds memory to some 160 MB for one. */
export const THUMB_SOURCE_MEGAPIXELS_DEFAULT = 32;
export const PIXELS_PER_MEGAPIXEL = 1024 * 1024;
export const THUMB_SOURCE_MAX_BYTES = 64 * 1024 * 1024;
export const THUMBS_AT_ONCE_DEFAULT = 1;
export const THUMBS_WAITING_MAX = 100;
