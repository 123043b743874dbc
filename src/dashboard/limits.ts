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
/** A browser lays a text out to measure it, at each key: for a million characters that takes seconds. */
export const MEASURED_MAX_CHARACTERS = 20_000;
/** Writes of one batch, by the server. */
export const BATCH_MAX = 500;
/** Time between two looks at jobs, and at the log of push. */
export const JOBS_EVERY_MS = 3_000;
export const LOGS_EVERY_MS = 2_000;
/** Lines of the log that are read at first, and that are kept. */
export const LOG_LINES_READ = 300;
export const LOG_LINES_MAX = 500;
/** Statements that the SQL page remembers of a database, and characters of one that it remembers or has in its address. */
export const SQL_HISTORY_MAX = 100;
export const SQL_HISTORY_CHARACTERS_MAX = 10_000;
export const SQL_ADDRESS_CHARACTERS_MAX = 4_000;
/** Columns of tables and views that completion knows. */
export const SQL_COLUMNS_MAX = 5_000;
/** Time between two looks at rooms. */
export const ROOMS_EVERY_MS = 700;
/** Rooms, and channels, that are listed: a search finds the others. */
export const LISTED_MAX = 200;
/** Players of a room who are listed before one asks for all. */
export const PLAYERS_SHOWN = 50;
/** Time between two looks at the figures of the overview. */
export const FIGURES_EVERY_MS = 5_000;
/** Looks at the server that the charts of the overview keep: an hour of them. */
export const SAMPLES_MAX = 720;
/** Rows of a chart's numbers. */
export const CHART_TABLE_ROWS_MAX = 120;
/** Time between two looks at realtime. */
export const REALTIME_EVERY_MS = 1_000;
/** Messages of a channel that are kept, and characters of one that are shown in a line. */
export const TAIL_MESSAGES_MAX = 200;
export const TAIL_LINE_CHARACTERS = 300;
/** Fields that are searched for the records of a user. */
export const MENTIONS_MAX = 40;
/** Time between two looks at backups. */
export const BACKUPS_EVERY_MS = 3_000;
/** Fields of a table that the diagram of the schema draws. */
export const DIAGRAM_FIELDS_MAX = 14;
/** Time between two looks at whether the server answers. */
export const SERVER_EVERY_MS = 4_000;

/** Events of a funnel. */
export const FUNNEL_STEPS_MIN = 2;
export const FUNNEL_STEPS_MAX = 5;

/** The code of the next page is loaded when the browser is idle, or after this time. */
export const AHEAD_IDLE_MAX_MS = 200;
