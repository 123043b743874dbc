/** How long what has been loaded is shown without loading it again. */
export const STALE_MS = 10_000;
/** Pixels. Browsers lay out no higher element than so many rows: those beyond are reached by a filter. */
export const COLUMN_MIN_WIDTH = 60;
export const SHOWN_ROWS_MAX = 400_000;
/** Time between two loads of a table in which records come and go. */
export const RELOAD_EVERY_MS = 1_000;
/** How long a record flashes that has changed. */
export const FLASH_MS = 1_200;
/** How long a deletion can be undone. */
export const UNDO_MS = 10_000;
/** Writes of one batch, by the server. */
export const BATCH_MAX = 500;
/** Time between two looks at jobs, and at the log. */
export const JOBS_EVERY_MS = 3_000;
export const LOGS_EVERY_MS = 2_000;
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
/** Time between two looks at the figures of the overview. */
export const FIGURES_EVERY_MS = 5_000;
/** Looks at the server that the charts of the overview keep: an hour of them. */
export const SAMPLES_MAX = 720;
/** Rows of a chart's numbers. */
export const CHART_TABLE_ROWS_MAX = 120;
