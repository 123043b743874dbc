/** Matches of a search (`topK`). */
export const TOP_K_DEFAULT = 10;
export const TOP_K_MAX = 100;
/** Vectors of one page of a list. */
export const LIST_DEFAULT = 50;
export const LIST_MAX = 100;
/** Vectors of one upsert, and ids of one delete or getByIds. */
export const VECTORS_MAX = 1000;
/** Numbers of an upsert, and characters of its metadata, that are converted in one turn of the event loop. */
export const NUMBERS_PER_TURN_MAX = 128 * 1024;
/** Characters (code points) of an id. */
export const ID_LENGTH_MAX = 256;
/** Bytes of one vector's metadata as JSON. */
export const METADATA_MAX_BYTES = 64 * 1024;
/** Conditions of one filter, and values of one `$in`. */
export const FILTER_CONDITIONS_MAX = 50;
export const FILTER_VALUES_MAX = 1000;
/** Characters of a filter as JSON, and of a name in it, which may have dots. */
export const FILTER_LENGTH_MAX = 256 * 1024;
export const FILTER_NAME_LENGTH_MAX = 512;
/**
 * Bounds of a vector's length within which its square is a normal 32-bit float; outside, distances would be infinite or NaN.
 * Zero is allowed except for cosine, for which it has no direction.
 */
export const LENGTH_MIN = 1e-18;
export const LENGTH_MAX = 1e18;
/** Searches that may wait for a process, and how long each may wait. */
export const SEARCH_QUEUE_MAX = 1000;
export const SEARCH_QUEUE_TIMEOUT_MS = 30_000;
/** Time limit of a search, which is then ended by killing its process. */
export const SEARCH_TIMEOUT_MS = 30_000;
/** Maximum number of search processes. */
export const SEARCH_PROCESSES_MAX = 4;
/** Idle time after which a process ends. */
export const PROCESS_IDLE_MS = 60_000;
/** Bytes of a chunk of vectors in the file: larger chunks cost more to change, smaller ones more to scan. */
export const CHUNK_BYTES = 512 * 1024;
/** Vectors of a chunk. vec0 requires a multiple of 8. */
export const CHUNK_VECTORS_MIN = 64;
export const CHUNK_VECTORS_MAX = 1024;
/** Deletions after which a compaction runs. */
export const COMPACT_AFTER_DELETIONS = 1024;
/** Vectors that one step of a compaction moves. */
export const COMPACT_STEP_VECTORS = 64;
/** KiB of the page cache of the writing connection. */
export const CACHE_KIB = 4096;
/** Bytes of its file that a searching connection maps into memory instead of copying. */
export const MMAP_MAX_BYTES = 4 * 1024 * 1024 * 1024;

if (LENGTH_MIN * LENGTH_MIN < 2 ** -126 || LENGTH_MAX * LENGTH_MAX > 2 ** 127) {
  throw new Error("the square of a vector's length must be a normal number of 32 bits");
}
