import type { RehearsedFile } from "../../db/index.ts";

/** The command that runs a rehearsal beside a server; not for people. */
export const REHEARSAL_JOB_COMMAND = "rehearsal-job";

/** What the process prints, as lines of JSON: files that do not fit, the first of them by name, and how many there were. */
export type RehearsalLine = { file: RehearsedFile } | { looked: number; unfit: number; untried: number };
