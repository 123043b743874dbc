/** The states of a row. A job that waits behind another one of its group is not in the index of due jobs. */
export const WAITING = 0;
export const BEHIND = 1;
export const RUNNING = 2;
export const DONE = 3;
export const FAILED = 4;

/** The states that callers see. */
export type JobState = "waiting" | "running" | "done" | "failed";

const ROW_STATES: Readonly<Record<JobState, readonly number[]>> = {
  waiting: [WAITING, BEHIND],
  running: [RUNNING],
  done: [DONE],
  failed: [FAILED],
};
/** The states of rows that callers see as `state`; null: all. */
export const rowStates = (state: JobState | null): readonly number[] =>
  state === null ? Object.values(ROW_STATES).flat() : ROW_STATES[state];

const NAMES: readonly JobState[] = ["waiting", "waiting", "running", "done", "failed"];
export const stateName = (state: number): JobState => NAMES[state] ?? "waiting";
