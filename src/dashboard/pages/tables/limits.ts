/** Time between the last key in a search and its request. */
export const SEARCH_DELAY_MS = 150;
/** Records that are shown before a file is imported, and how many of their fields. */
export const PREVIEW_RECORDS = 10;
export const PREVIEW_COLUMNS_MAX = 50;
/** A JSON array is read as a whole. */
export const IMPORT_JSON_MAX_BYTES = 64 * 1024 * 1024;
/** Characters of a line, or a row of CSV, of a file that is imported. */
export const IMPORT_LINE_MAX_CHARACTERS = 16 * 1024 * 1024;
/** Rows of CSV are parsed in pieces of this length. */
export const CSV_CHUNK_CHARACTERS = 256 * 1024;
/** Characters of one batch of an import: below the smallest body limit that servers usually have. */
export const IMPORT_BATCH_CHARACTERS = 1024 * 1024;
/** Records per page of an export: the most that a list gives. */
export const EXPORT_PAGE_RECORDS = 1_000;
/** Fields of records without a schema that are shown as columns. */
export const FOUND_FIELDS_MAX = 50;
