/** Bytes of pages of an unfinished transaction that are sent ahead as a part, and that wait for more otherwise. */
export const PART_MIN_BYTES = 512 * 1024;
/** Bytes of one row's content before compression: a part of a transaction, or the content of a new file. */
export const CONTENT_MAX_BYTES = 64 * 1024 * 1024;
