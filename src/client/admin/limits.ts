/** How often it is asked whether a backup is done. */
export const RUN_POLL_MS = 500;
