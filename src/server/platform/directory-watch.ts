import type { Clock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import type { DirectoryLock, StorageEngine } from "../db/index.ts";

const CHECK_MS = 1000;

interface DirectoryWatchOptions {
  clock: Clock;
  engine: StorageEngine;
  logger: Logger;
  lock: DirectoryLock;
  /** Called once, when another process has taken the lock. */
  onTaken: (() => void) | undefined;
}

/**
 * Checks every second whether the data directory is still in its place. While it is not (moved, deleted, or mounted over), the open
 * files belong to a directory that a restart would not find: writes are refused until it is back; reads continue. [DB301]
 */
export class DirectoryWatch {
  readonly #options: DirectoryWatchOptions;
  #cancel: () => void;

  constructor(options: DirectoryWatchOptions) {
    this.#options = options;
    this.#cancel = options.clock.after(CHECK_MS, () => this.#check());
  }

  stop(): void {
    this.#cancel();
  }

  #check(): void {
    const { clock, engine, logger, lock, onTaken } = this.#options;
    const place = lock.place();
    const wasAway = engine.refusal !== null;
    if (place === "held") {
      engine.refusal = null;
      if (wasAway) logger.info("the data directory is back: writes are taken again");
    } else {
      engine.refusal = new AppError(503, "The data directory is not where it was: nothing is written until it is back");
      if (place === "taken") {
        onTaken?.();
        return;
      }
      if (!wasAway) logger.error("the data directory is not where it was: writes are refused until it is back");
    }
    this.#cancel = clock.after(CHECK_MS, () => this.#check());
  }
}
