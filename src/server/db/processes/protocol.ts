/** What the server and a process of its pool say to each other. */

/** The program that a process runs: `source` is its bundled text, or `file` its path where the server runs from source. */
export interface ProgramStart {
  source: string | null;
  file: string | null;
  /** What the program was given by the area that it belongs to. */
  settings: unknown;
}

export type ToProcess =
  /** Bytes of the job that follows. */
  | { kind: "bytes"; bytes: Uint8Array<ArrayBuffer> }
  | { kind: "job"; id: number; request: unknown }
  /** The large answer of this job may be sent. */
  | { kind: "room"; id: number };

export type FromProcess =
  /** A part of the answer; more follows. */
  | { kind: "part"; id: number; part: unknown }
  /** An answer of `sizeBytes` waits for room. */
  | { kind: "room"; id: number; sizeBytes: number }
  | { kind: "done"; id: number; answer: unknown }
  | { kind: "failed"; id: number; failure: unknown };
