import { MINUTE_MS, SECOND_MS } from "../../kernel/time/duration.ts";

/** The default of `server.maxBodySize`: bytes of a JSON body. */
export const BODY_MAX_BYTES = 10 * 1024 * 1024;
/**
 * The maximum size of bodies under `/api/auth` (an email, a password, tokens, 16 KB of metadata), and of others that contain only
 * names.
 */
export const SMALL_BODY_MAX_BYTES = 64 * 1024;

/**
 * Bytes of unfinished bodies, of which more than `SMALL_BODY_MAX_BYTES` has arrived: per client address and in total. A body
 * occupies memory until it is complete, and its sender decides when that is.
 */
export const UNFINISHED_PER_ADDRESS_MAX_BYTES = 64 * 1024 * 1024;
export const UNFINISHED_MAX_BYTES = 256 * 1024 * 1024;
/** The `Retry-After` of answers beyond these bounds. */
export const UNFINISHED_RETRY_SECONDS = 5;

/** Characters of a body from which it is parsed in steps, over several turns of the event loop. */
export const SLICED_LENGTH_MIN = 128 * 1024;
/**
 * Values (commas and opening brackets outside strings) of a body over `SMALL_BODY_MAX_BYTES`, and the named members among them. A
 * batch of 500 records has room for 100 fields each.
 */
export const BODY_VALUES_MAX = 250_000;
export const BODY_NAMES_MAX = 50_000;
/** The largest block in which a body over `SMALL_BODY_MAX_BYTES`, or the JSON of a form, is kept until it is parsed. */
export const BLOCK_BYTES = 64 * 1024;
/** Bytes of complete bodies waiting to be parsed from which no further bytes of other bodies are read. */
export const COMPLETE_MAX_BYTES = 16 * 1024 * 1024;
/**
 * Bytes of parsed bodies over `SMALL_BODY_MAX_BYTES` after which garbage is collected: parsing leaves five times the bytes of a
 * body, and Bun collects only after some hundred megabytes.
 */
export const GARBAGE_MAX_BYTES = 32 * 1024 * 1024;
/** Bytes of a body that are read in one turn of the event loop. */
export const BYTES_PER_TURN_MAX = 256 * 1024;
/** An upload is aborted when fewer than UPLOAD_MIN_BYTES arrive within UPLOAD_STALL_MS: slower than any mobile network. */
export const UPLOAD_STALL_MS = MINUTE_MS;
export const UPLOAD_MIN_BYTES = 16 * 1024;
/** Chunks of a body that are read in one turn of the event loop: a client may send each byte in a chunk of its own. */
export const CHUNKS_PER_TURN_MAX = 100;
/**
 * Keys (such as addresses) that a rate limiter counts at once. Beyond it, the least recently used key is evicted: the limiter then
 * lets more requests through, not fewer.
 */
export const COUNTED_KEYS_MAX = 100_000;
/** Unknown parameters that an answer names: a query may contain thousands. */
export const UNKNOWN_NAMED_MAX = 20;
/** The time without progress after which a client is disconnected: until then its answer is in memory. */
export const STALL_TIMEOUT_MS = 20_000;
/**
 * The idle timeout of a connection, longer than the slowest answer takes to begin (a query of 30 s that waited for 30 s). Bun
 * closes a connection that is idle for this long; a body slower than about 20 KiB/s counts as idle.
 */
export const IDLE_TIMEOUT_SECONDS = 120;
/**
 * Bytes of the request line and headers together: a filter may list 1,000 ids, and a cursor may contain long texts. Four times
 * Bun's default. [HT35]
 */
export const HEADERS_MAX_BYTES = 64 * 1024;
/** Bytes of a small text in an object store. */
export const S3_NOTE_MAX_BYTES = 64 * 1024;
/** Bytes of an object store's answer about an upload, or with a page of keys: each key takes up to 1 KiB and its escapes. */
export const S3_ANSWER_MAX_BYTES = 8 * 1024 * 1024;
/** Bytes of an object store's error body that are read. */
export const S3_ERROR_MAX_BYTES = 16 * 1024;
/** The timeout of an object store to receive a part and answer. */
export const S3_ANSWER_TIMEOUT_MS = 5 * MINUTE_MS;
/** Bytes of a body that is read by neither an upload (bounded by its bucket) nor a JSON parser (bounded by itself). */
export const REQUEST_MAX_BYTES = 1024 ** 4;
export const MAX_AGE_SECONDS = 600;

if (UNFINISHED_PER_ADDRESS_MAX_BYTES < 2 * BODY_MAX_BYTES) {
  throw new Error("one address must be able to send more than one of the largest bodies at once");
}

/** Characters of an `Idempotency-Key`. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 128;

/** Bytes from which JSON of another process is sent in the parts in which it came. */
export const PIECES_FROM_BYTES = 1024 * 1024;
/** The time without progress after which a client of such an answer is disconnected: its answer is in memory until then. */
export const STALLED_CLIENT_TIMEOUT_MS = 20_000;

/** Entries of `X-Forwarded-For` that are examined, from its end, where proxies are known by their addresses. */
export const FORWARDED_ENTRIES_MAX = 20;
/** The seconds of `server.hsts: true`: a year. */
export const HSTS_SECONDS = 365 * 24 * 60 * 60;

/**
 * Time for which the old server goes on listening after a renewal: longer than a connection may be idle, so that no connection is
 * closed while a client sends a request on it.
 */
export const RETIREMENT_MS = (IDLE_TIMEOUT_SECONDS + 5) * SECOND_MS;
/** Maximum number of old servers that listen, and of old servers with connections: if more certificates come, the oldest one ends. */
export const RETIRED_LISTENING_MAX = 4;
export const RETIRED_MAX = 16;

/** The largest body of an object store that is read whole before the answer, so that a failure becomes a status. */
export const REMOTE_WHOLE_MAX_BYTES = 256 * 1024;

/** The time before a host is looked up again: less than the 30 s for which Bun caches its address. */
export const HOST_KNOWN_MS = 20 * SECOND_MS;
export const HOSTS_KNOWN_MAX = 1_000;

/** Bytes of the header of one part of a form; the rest of a longer one is ignored. */
export const FORM_HEADER_MAX_BYTES = 8 * 1024;
export const FORM_HEADER_LINES_MAX = 16;
