/** Row of a results table. All values are display text; null where there is none. */
export interface Result {
  name: string;
  /** Measurement with its unit: `48,100 requests/s`. */
  measured: string;
  p50: string | null;
  p99: string | null;
  /** Floor, measured in the same run. */
  floor: string | null;
  /** Ratio of the measurement to the floor. */
  ratio: number | null;
  target: string | null;
  /** Whether the target is met; null without one. */
  isMet: boolean | null;
}

/** Section of the results that can be measured separately: `npm run bench -- NAME`. */
export interface Section {
  /** Name on the command line. */
  name: string;
  title: string;
  /** Description of the measurement, in a paragraph: what a reader needs to believe or repeat the numbers. */
  about: string;
  run(bench: Bench): Promise<Result[]>;
}

export interface Bench {
  /** Path of the compiled executable. */
  executable: string;
  /** Creates a directory that is removed at the end. */
  directory(name: string): string;
  /** Reports progress to the person waiting. */
  note(text: string): void;
}
