import { isDiskFull } from "../../../kernel/errors.ts";

/** Result code of SQLite for a full disk, in the low byte of extended ones: all that is known of an error in another process. */
const SQLITE_FULL = 13;
const CODE_MASK = 0xff;

/**
 * Reports the failures of a file: of its writer, and of the processes that move its WAL and index its texts. All of them find a full
 * disk, which is reported once until a write succeeds. [DB52]
 */
export class FileFailures {
  readonly #report: (cause: unknown) => void;
  #isDiskFull = false;

  constructor(report: (cause: unknown) => void) {
    this.#report = report;
  }

  readonly note = (cause: unknown): void => {
    const isFull = isDiskFull(cause) || isFullElsewhere(cause);
    if (!isFull || !this.#isDiskFull) this.#report(cause);
    this.#isDiskFull ||= isFull;
  };

  /** Takes note that a write was committed. */
  readonly written = (): void => {
    this.#isDiskFull = false;
  };
}

const isFullElsewhere = (cause: unknown): boolean =>
  typeof cause === "object" &&
  cause !== null &&
  "errorCode" in cause &&
  (Number(cause.errorCode) & CODE_MASK) === SQLITE_FULL;
