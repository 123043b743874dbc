import type { RehearsedFile } from "../../db/index.ts";

/** The command that runs a rehearsal beside a server. */
export const REHEARSAL_JOB_COMMAND = "rehearsal-job";

/** A line of JSON that the process prints: one of the first files that do not fit, or, at the end, the numbers of files. */
export type RehearsalLine = { file: RehearsedFile } | { looked: number; unfit: number; untried: number };
