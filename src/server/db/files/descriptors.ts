import fs from "node:fs";
import type { Clock } from "../../../kernel/clock.ts";
import { codeOf } from "../../../kernel/errors.ts";
import {
  DESCRIPTORS_COMFORTABLE,
  DESCRIPTORS_PER_FILE,
  INSTANCES_CLOSING_MAX,
  INSTANCES_OVER_MAX,
  OPEN_INSTANCES_MAX,
  RESERVE_DESCRIPTORS_MAX,
  RESERVE_REFILL_MS,
} from "../limits.ts";
import { shortage } from "../writer/sqlite-errors.ts";

/** The limit assumed for systems that report none (Windows has no practical limit). */
const LIMIT_UNKNOWN = 16_384;
const PROC_LIMITS = "/proc/self/limits";

/**
 * The number of file descriptors that this process may have open. Bun raises the soft limit to the hard limit before it
 * runs any code, on Linux (glibc and musl) and on macOS. This is the raised limit.
 */
export function descriptorLimit(): number {
  if (process.platform === "win32") return LIMIT_UNKNOWN;
  try {
    const [, soft = ""] = /^Max open files\s+(\d+)/m.exec(fs.readFileSync(PROC_LIMITS, "utf8")) ?? [];
    if (soft !== "") return Number(soft);
  } catch {
    // No /proc, as on macOS. The process report has the limit, but is slower.
  }
  // The library's type has no members.
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" && soft > 0 ? soft : LIMIT_UNKNOWN;
}

/** Bounds of one namespace's instance files: files kept open, files over that bound waiting to be closed, and files being closed. */
export interface InstanceBounds {
  openMax: number;
  overMax: number;
  closingMax: number;
}

/** Returns the bounds of one namespace. A quarter of all descriptors is for instance files; all `namespaces` share it equally. */
export function instanceBounds(limit: number, namespaces: number): InstanceBounds {
  const share = Math.floor(limit / 4 / DESCRIPTORS_PER_FILE / Math.max(1, namespaces));
  // Files over the bound or being closed are open too. They add 3/8, so that 11/8 of the bound is the whole share.
  return boundsOf(Math.min(OPEN_INSTANCES_MAX, Math.max(2, Math.floor((share * 8) / 11))));
}

export function boundsOf(openMax: number): InstanceBounds {
  return {
    openMax,
    overMax: Math.min(INSTANCES_OVER_MAX, Math.ceil(openMax / 4)),
    closingMax: Math.min(INSTANCES_CLOSING_MAX, Math.ceil(openMax / 8)),
  };
}

/** Returns the bound on WebSockets: half of all descriptors. A WebSocket uses one until its client disconnects. */
export const socketsMax = (limit: number): number => Math.floor(limit / 2);

/** Warns of a limit that a few thousand idle connections reach; null: the limit is high enough. */
export const scarceDescriptors = (limit: number): string | null =>
  limit >= DESCRIPTORS_COMFORTABLE
    ? null
    : `this process may open ${limit} files: that many idle connections keep all others waiting; raise the limit to ` +
      "20,000 or more (LimitNOFILE= in systemd, ulimit -Hn)";

/** Descriptors that opening a file takes: those that stay open, and those that are closed again. */
const TAKEN_BY_OPENING = DESCRIPTORS_PER_FILE + 2;

/** Reports whether fewer descriptors are available than opening a file takes. SQLite reports only that a file cannot be opened. */
function lacksDescriptors(): boolean {
  if (process.platform === "win32") return false;
  const probes: number[] = [];
  try {
    while (probes.length < TAKEN_BY_OPENING) probes.push(fs.openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return /^(EMFILE|ENFILE)$/.test(codeOf(error));
  } finally {
    for (const probe of probes) fs.closeSync(probe);
  }
}

/**
 * Descriptors reserved for files. The runtime accepts connections until no descriptor is left, so the reserve opens some in
 * advance. It closes them while a file is opened; that is synchronous, so no connection can take them.
 */
export class DescriptorReserve {
  readonly #size: number;
  readonly #clock: Clock;
  #held: number[] = [];
  #cancelRefill: (() => void) | null = null;

  constructor(limit: number, clock: Clock) {
    this.#size = process.platform === "win32" ? 0 : Math.min(RESERVE_DESCRIPTORS_MAX, Math.floor(limit / 16));
    this.#clock = clock;
    this.#refill();
  }

  /**
   * Runs `open`. If it finds no descriptor, runs it once more with a part of the reserve released. Errors: those of `open`; 503 if
   * there are too few descriptors even then.
   */
  lend<T>(open: () => T): T {
    try {
      return open();
    } catch (error) {
      if (!lacksDescriptors()) throw error;
    }
    for (const descriptor of this.#held.splice(0, TAKEN_BY_OPENING)) fs.closeSync(descriptor);
    try {
      const opened = open();
      this.#refill();
      return opened;
    } catch (error) {
      // The failed attempt has closed what it opened: whether that was too little shows when the reserve has its part again.
      this.#refill();
      throw lacksDescriptors() ? shortage(error) : error;
    }
  }

  close(): void {
    this.#cancelRefill?.();
    for (const descriptor of this.#held.splice(0)) fs.closeSync(descriptor);
  }

  #refill(): void {
    // Another use of the reserve may wait for its turn already.
    this.#cancelRefill?.();
    this.#cancelRefill = null;
    try {
      while (this.#held.length < this.#size) this.#held.push(fs.openSync("/dev/null", "r"));
    } catch {
      this.#cancelRefill = this.#clock.after(RESERVE_REFILL_MS, () => this.#refill());
    }
  }
}
