/** Messages between the server and a process of its pool. */

/** The program of a process: `source` is its bundled text, or `file` its path where the server runs from source. */
export interface ProgramStart {
  source: string | null;
  file: string | null;
  /** Settings from the area that the program belongs to. */
  settings: unknown;
}

export type ToProcess =
  /** Bytes for the job that follows. */
  | { kind: "bytes"; bytes: Uint8Array<ArrayBuffer> }
  | { kind: "job"; id: number; request: unknown }
  /** Permission to send the large answer of this job. */
  | { kind: "room"; id: number }
  | { kind: "told"; id: number; answer: unknown };

export type FromProcess =
  /** A part of the answer; more follow. */
  | { kind: "part"; id: number; part: unknown }
  /** Request for room for an answer of `sizeBytes`. */
  | { kind: "room"; id: number; sizeBytes: number }
  /** Question to the server in the middle of a job. */
  | { kind: "ask"; id: number; question: unknown }
  | { kind: "done"; id: number; answer: unknown }
  | { kind: "failed"; id: number; failure: unknown };
