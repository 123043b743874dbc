import { STOP_MAX_MS } from "../../kernel/limits.ts";

/** Warnings of the config that a start logs one by one. */
export const WARNINGS_LOGGED_MAX = 20;

/** Characters of lines that wait for whoever reads standard error or output; what comes while there are more is counted and lost. */
export const OUTPUT_WAITING_MAX_CHARACTERS = 1024 * 1024;
/** The end of a process waits for its last lines to be written. */
export const OUTPUT_FLUSH_MAX_MS = 500;
/** The next attempt to write to a pipe or terminal whose reader is behind. */
export const OUTPUT_RETRY_MS = 20;

/** `dev`: editors write a file in several steps; a restart waits until they are done. */
export const SETTLE_MS = 100;
/** `dev`: after it a server that does not stop is killed. A server ends its stop by itself before. */
export const DEV_STOP_MAX_MS = STOP_MAX_MS + 1_000;

/** `health`: a server that takes longer to answer does not serve. */
export const HEALTH_TIMEOUT_MS = 4_000;
/** Bytes of its answer. */
export const HEALTH_ANSWER_MAX_BYTES = 64 * 1024;

/** Operations of one batch request of an import. */
export const BATCH_RECORDS_MAX = 500;
/** Below the smallest body limit that servers usually have; a single record may be larger. */
export const BATCH_MAX_CHARACTERS = 1024 * 1024;
/** Characters of a line of a file that is imported. */
export const LINE_MAX_CHARACTERS = 64 * 1024 * 1024;
/** Records per page of an export: the most that a list gives. */
export const PAGE_RECORDS_MAX = 1_000;

/** Files up to this size are copied into memory and migrated there: beside a server, and by `platform check`. */
export const SERVER_COPY_MAX_BYTES = 64 * 1024 * 1024;
export const CHECK_COPY_MAX_BYTES = 512 * 1024 * 1024;
/** A rehearsal beside a server works for this time, and then rests for as long. */
export const WORK_SLICE_MS = 20;
/** Instances that the log of a start names one by one; for more it gives the number. */
export const LOGGED_INSTANCES_MAX = 20;
/** Groups of files with the same problems that `platform check` names, and files that it names of each group. */
export const REPORTED_GROUPS_MAX = 20;
export const REPORTED_FILES_MAX = 10;

/** Entries that `audit --url` asks for at once. */
export const AUDIT_PAGE_ENTRIES = 200;
/** Problems of one check that `doctor` names one by one. */
export const PROBLEMS_SHOWN_MAX = 50;
/** A content that no file names is left over when it is older: younger ones may be uploads under way. */
export const ORPHAN_AGE_MS = 24 * 60 * 60 * 1_000;
