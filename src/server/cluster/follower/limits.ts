import { CHECKPOINT_BYTES, WAL_FRAME_BYTES } from "../../db/limits.ts";

/** Time for which an entry waits for a lock of SQLite, which another process holds for moments only. */
export const LOCK_WAIT_MS = 100;
/** Time of one turn of the event loop that applying takes. */
export const APPLY_TURN_MS = 8;
/** Files from which those of instances are closed that were not changed for longest. */
export const OPEN_FILES_MAX = 64;
/** Frames of a WAL from which a checkpoint runs. */
export const CHECKPOINT_FRAMES = Math.floor(CHECKPOINT_BYTES / WAL_FRAME_BYTES);
/** Frames of a WAL from which nothing is applied until its readers have ended, and it too. */
export const FRAMES_MAX = 64 * CHECKPOINT_FRAMES;
/** Delay before what has failed is tried again. */
export const RETRY_MS = 500;
/** Bytes of entries that wait to be applied from which on no more are read. */
export const WAITING_MAX_BYTES = 64 * 1024 * 1024;
