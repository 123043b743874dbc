/** One line of a results table. Everything is text, as a reader sees it; null where there is nothing to say. */
export interface Result {
  name: string;
  /** What was measured, with its unit: `48,100 requests/s`. */
  measured: string;
  p50: string | null;
  p99: string | null;
  /** What it is compared with, measured in the same run. */
  floor: string | null;
  /** Measured divided by the floor. */
  ratio: number | null;
  target: string | null;
  /** null where there is no target. */
  isMet: boolean | null;
}

/** A part of the results that is measured by itself: `npm run bench -- NAME`. */
export interface Section {
  /** As it is asked for on the command line. */
  name: string;
  title: string;
  /** What was done, in a paragraph: what a reader needs to believe or repeat the numbers. */
  about: string;
  run(bench: Bench): Promise<Result[]>;
}

export interface Bench {
  /** The compiled executable. */
  executable: string;
  /** A fresh directory that goes at the end. */
  directory(name: string): string;
  /** Tells who waits what is being measured. */
  note(text: string): void;
}
