import { STOP_MAX_MS } from "../../kernel/limits.ts";

/** Warnings of the config that a start logs individually. */
export const WARNINGS_LOGGED_MAX = 20;

/** Characters of lines waiting to be read from standard error or output; further lines are dropped and counted. */
export const OUTPUT_WAITING_MAX_CHARACTERS = 1024 * 1024;
/** The time that an ending process waits for its last lines to be written. */
export const OUTPUT_FLUSH_MAX_MS = 500;
/** The interval of write attempts to a pipe or terminal whose reader is slow. */
export const OUTPUT_RETRY_MS = 20;

/** The debounce of `dev`: editors write a file in several steps; a restart waits until they are done. */
export const SETTLE_MS = 100;
/** The time after which `dev` kills a server that does not stop. A server gives up its stop earlier. */
export const DEV_STOP_MAX_MS = STOP_MAX_MS + 1_000;

/** The timeout of `health`: a slower server counts as failed. */
export const HEALTH_TIMEOUT_MS = 4_000;
/** Bytes of the answer to `health`. */
export const HEALTH_ANSWER_MAX_BYTES = 64 * 1024;

/** Operations of one batch request of an import. */
export const BATCH_RECORDS_MAX = 500;
/** Characters of one batch, below the smallest usual body limit of servers; a single record may be larger. */
export const BATCH_MAX_CHARACTERS = 1024 * 1024;
/** Characters of a line of an imported file. */
export const LINE_MAX_CHARACTERS = 64 * 1024 * 1024;
/** Records per page of an export: the maximum of a list. */
export const PAGE_RECORDS_MAX = 1_000;

/** The maximum size of files that are copied into memory and migrated there: beside a server, and by `platform check`. */
export const SERVER_COPY_MAX_BYTES = 64 * 1024 * 1024;
export const CHECK_COPY_MAX_BYTES = 512 * 1024 * 1024;
/** The time that a rehearsal beside a server works before it pauses for as long. */
export const WORK_SLICE_MS = 20;
/** Instances that the log of a start names individually; beyond it, only their number. */
export const LOGGED_INSTANCES_MAX = 20;
/** Groups of files with the same problems that `platform check` names, and files that it names per group. */
export const REPORTED_GROUPS_MAX = 20;
export const REPORTED_FILES_MAX = 10;

/** Entries per request of `audit --url`. */
export const AUDIT_PAGE_ENTRIES = 200;
/** Problems of one check that `doctor` lists. */
export const PROBLEMS_SHOWN_MAX = 50;
/** The age from which a content without a file counts as an orphan: younger ones may be uploads in progress. */
export const ORPHAN_AGE_MS = 24 * 60 * 60 * 1_000;
/** Time that `keys --rotate-tokens` waits for the server, and pause between its looks. */
export const TOKEN_KEY_WAIT_MS = 15_000;
export const TOKEN_KEY_PAUSE_MS = 100;
/** The time after which the process that tries an edited config is killed. */
export const PREVIEW_MAX_MS = 20_000;
/** The end of its output that is kept: its answer is the last line. */
export const PREVIEW_OUTPUT_CHARACTERS = 1024 * 1024;
/** Characters of a line that `platform mcp` passes on, or of an answer. */
export const MCP_MESSAGE_MAX_CHARACTERS = 4 * 1024 * 1024;
/** Paths that a completion offers. */
export const COMPLETIONS_MAX = 1_000;
