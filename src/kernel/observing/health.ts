import type { Clock } from "../clock.ts";
import type { JsonValue } from "../json/json.ts";
import { HEALTH_KEPT_MS } from "../limits.ts";
import type { MaybePromise } from "../maybe-promise.ts";

/** Result of one check. `ok: false` makes the server `degraded`, or `unavailable` where the check is vital. */
export type CheckResult = { ok: boolean } & { readonly [figure: string]: JsonValue };

type HealthStatus = "ok" | "degraded" | "unavailable";

export interface HealthReport {
  status: HealthStatus;
  /** Results by check name, in the order in which the checks were added. */
  checks: Record<string, CheckResult>;
}

interface Check {
  name: string;
  isVital: () => boolean;
  look: () => MaybePromise<CheckResult>;
}

/**
 * Builds the server's health report. Each area adds its checks when it opens. A check must be quick on the event loop; one that
 * throws counts as `{ ok: false }`, and the cause goes to `onFailure`.
 */
export class HealthChecks {
  readonly #clock: Clock;
  readonly #onFailure: (name: string, cause: unknown) => void;
  readonly #checks: Check[] = [];
  #kept: { at: number; report: Promise<HealthReport> } | null = null;
  #isStopping = false;

  constructor(deps: { clock: Clock; onFailure(name: string, cause: unknown): void }) {
    this.#clock = deps.clock;
    this.#onFailure = deps.onFailure;
  }

  /** Adds a check. `isVital`: the server cannot serve while the check is not ok, so its health is 503. */
  add(name: string, look: Check["look"], { isVital = false }: { isVital?: boolean | (() => boolean) } = {}): void {
    this.#checks.push({ name, isVital: typeof isVital === "function" ? isVital : () => isVital, look });
  }

  /** Reports the server as unavailable from this call on. */
  stopping(): void {
    this.#isStopping = true;
  }

  async report(): Promise<HealthReport> {
    const now = this.#clock.now();
    if (this.#kept === null || Math.abs(now - this.#kept.at) >= HEALTH_KEPT_MS) {
      this.#kept = { at: now, report: this.#make() };
    }
    const report = await this.#kept.report;
    return this.#isStopping ? { ...report, status: "unavailable" } : report;
  }

  async #make(): Promise<HealthReport> {
    const results = await Promise.all(this.#checks.map((check) => this.#resultOf(check)));
    const checks: Record<string, CheckResult> = {};
    let status: HealthStatus = "ok";
    for (const [index, { name, isVital }] of this.#checks.entries()) {
      const result = results[index] ?? { ok: false };
      checks[name] = result;
      if (result.ok) continue;
      status = isVital() ? "unavailable" : status === "unavailable" ? status : "degraded";
    }
    return { status, checks };
  }

  async #resultOf({ name, look }: Check): Promise<CheckResult> {
    try {
      return await look();
    } catch (cause) {
      this.#onFailure(name, cause);
      return { ok: false };
    }
  }
}
