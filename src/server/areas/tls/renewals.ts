import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { AcmeConfig } from "../../config/types.ts";
import type { AcmeFiles } from "./acme/files.ts";
import { orderOf, renewalTime } from "./acme/renewal-time.ts";
import type { CertificateFacts } from "./certificate.ts";
import type { RunCertificateJob } from "./job/process.ts";
import { RENEWAL_LOOK_MS, RETRY_AFTER_FIRST_MS } from "./limits.ts";

export interface RenewalDeps {
  config: AcmeConfig;
  dataDirectory: string;
  files: AcmeFiles;
  clock: Clock;
  logger: Logger;
  run: RunCertificateJob;
  /** Returns the facts of the authority's certificate; null while there is none. */
  facts: () => CertificateFacts | null;
  /** Called when a certificate has been stored. */
  onRenewed: () => void;
}

/** Renews the certificate of one server when it is due, with backoff after failures. */
export class Renewals {
  readonly #deps: RenewalDeps;
  readonly #ending = new AbortController();
  #underWay: Promise<void> = Promise.resolve();
  #cancel: () => void = () => {};

  constructor(deps: RenewalDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#underWay = this.#look();
  }

  /** The latest failure of this order; null without one. */
  get problem(): string | null {
    const state = this.#deps.files.readState();
    return state.order === orderOf(this.#deps.config) ? state.problem : null;
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.#cancel();
    await this.#underWay;
  }

  async #look(): Promise<void> {
    const isDue = this.#timeLeftMs() <= 0;
    if (isDue) await this.#renew();
    if (this.#ending.signal.aborted) return;
    // On a full disk the failure cannot be stored, so the backoff is kept here.
    const leastMs = isDue ? RETRY_AFTER_FIRST_MS : 1;
    const delayMs = Math.min(Math.max(this.#timeLeftMs(), leastMs), RENEWAL_LOOK_MS);
    this.#cancel = this.#deps.clock.after(delayMs, () => this.start());
  }

  #timeLeftMs(): number {
    const { config, files, clock, facts } = this.#deps;
    const now = clock.now();
    return renewalTime(config, { facts: facts(), state: files.readState(), now }) - now;
  }

  async #renew(): Promise<void> {
    const { config, dataDirectory, clock, logger, run, files, onRenewed } = this.#deps;
    logger.info("tls: requesting a certificate", { domains: config.domains });
    try {
      await run({ kind: "issue", dataDirectory, config }, this.#ending.signal);
      onRenewed();
    } catch (cause) {
      if (this.#ending.signal.aborted) return;
      const { retryAt } = files.readState();
      const next = new Date(retryAt ?? clock.now()).toISOString();
      logger.error("tls: the certificate could not be renewed", { domains: config.domains, cause, next });
    }
  }
}
