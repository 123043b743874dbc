import type { RehearsedFile } from "../../db/index.ts";

/** The command that runs a rehearsal beside a server. */
export const REHEARSAL_JOB_COMMAND = "rehearsal-job";

/** The command that tries an edited config. */
export const PREVIEW_JOB_COMMAND = "preview-job";

/** The input of the process that tries a config. */
export interface PreviewJob {
  file: string;
  dataDirectory: string;
}

/** A line of JSON that the process prints: one of the first files that do not fit, or, at the end, the numbers of files. */
export type RehearsalLine = { file: RehearsedFile } | { looked: number; unfit: number; untried: number };
