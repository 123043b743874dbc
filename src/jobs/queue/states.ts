/** The states of a row. A job that waits behind another one of its group is not in the index of due jobs. */
export const WAITING = 0;
export const BEHIND = 1;
export const RUNNING = 2;
export const DONE = 3;
export const FAILED = 4;
