/** Files up to this size are copied into memory and migrated there: beside a server, and by `platform check`. */
export const SERVER_COPY_MAX_BYTES = 64 * 1024 * 1024;
export const CHECK_COPY_MAX_BYTES = 512 * 1024 * 1024;
/** Beside a server the process works for so long, and then rests for as long. */
export const WORK_SLICE_MS = 20;
/** Instances that the log of a start names one by one; of more it says how many. */
export const LOGGED_INSTANCES_MAX = 20;
/** Groups of files with the same problems that `platform check` names, and the files that it names of each. */
export const REPORTED_GROUPS_MAX = 20;
export const REPORTED_FILES_MAX = 10;
