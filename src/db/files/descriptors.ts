import fs from "node:fs";
import type { Clock } from "../../kernel/clock.ts";
import {
  DESCRIPTORS_PER_FILE,
  INSTANCES_CLOSING_MAX,
  INSTANCES_OVER_MAX,
  OPEN_INSTANCES_MAX,
  RESERVE_DESCRIPTORS_MAX,
  RESERVE_REFILL_MS,
} from "../limits.ts";

/** Where a system tells no limit (Windows has none to speak of). */
const LIMIT_UNKNOWN = 16_384;
const PROC_LIMITS = "/proc/self/limits";

/**
 * How many file descriptors this process may have open. Bun raises the soft limit to the hard one before it runs any
 * code, on Linux with either C library and on macOS: what is read here is that.
 */
export function descriptorLimit(): number {
  if (process.platform === "win32") return LIMIT_UNKNOWN;
  try {
    const [, soft = ""] = /^Max open files\s+(\d+)/m.exec(fs.readFileSync(PROC_LIMITS, "utf8")) ?? [];
    if (soft !== "") return Number(soft);
  } catch {
    // No /proc, as on macOS: the report says it, but takes longer to make.
  }
  // Typed as an object without members.
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" && soft > 0 ? soft : LIMIT_UNKNOWN;
}

/** The bounds of one namespace's instance files: kept open, beyond that until they are closed, and being closed. */
export interface InstanceBounds {
  openMax: number;
  overMax: number;
  closingMax: number;
}

/** A quarter of all descriptors is for instances, and `namespaces` of them share it. */
export function instanceBounds(limit: number, namespaces: number): InstanceBounds {
  const share = Math.floor(limit / 4 / DESCRIPTORS_PER_FILE / Math.max(1, namespaces));
  // What is over the bound or being closed is open too: with 3/8 more the share is used up.
  return boundsOf(Math.min(OPEN_INSTANCES_MAX, Math.max(2, Math.floor((share * 8) / 11))));
}

export function boundsOf(openMax: number): InstanceBounds {
  return {
    openMax,
    overMax: Math.min(INSTANCES_OVER_MAX, Math.ceil(openMax / 4)),
    closingMax: Math.min(INSTANCES_CLOSING_MAX, Math.ceil(openMax / 8)),
  };
}

/** Half of all descriptors: a WebSocket keeps one for as long as its client wants. */
export const socketsMax = (limit: number): number => Math.floor(limit / 2);

/** Whether a descriptor can be had right now. SQLite says only that a file cannot be opened. */
export function lacksDescriptors(): boolean {
  if (process.platform === "win32") return false;
  try {
    fs.closeSync(fs.openSync("/dev/null", "r"));
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && /^(EMFILE|ENFILE)$/.test(String(error.code));
  }
}

/**
 * Descriptors kept for files. Connections are accepted by the runtime as long as there are any, so some are taken
 * beforehand; they are given back while a file is opened, which no connection can come between.
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

  /** Runs `open`, and once more with a part of the reserve where it found no descriptor. Errors: those of `open`. */
  lend<T>(open: () => T): T {
    try {
      return open();
    } catch (error) {
      if (!lacksDescriptors()) throw error;
    }
    for (const descriptor of this.#held.splice(0, DESCRIPTORS_PER_FILE + 2)) fs.closeSync(descriptor);
    try {
      return open();
    } finally {
      this.#refill();
    }
  }

  close(): void {
    this.#cancelRefill?.();
    for (const descriptor of this.#held.splice(0)) fs.closeSync(descriptor);
  }

  #refill(): void {
    this.#cancelRefill = null;
    try {
      while (this.#held.length < this.#size) this.#held.push(fs.openSync("/dev/null", "r"));
    } catch {
      this.#cancelRefill = this.#clock.after(RESERVE_REFILL_MS, () => this.#refill());
    }
  }
}
