import type { Instant, LogServer, Statement } from "./statements.ts";

export interface ChannelPorts {
  send(statement: Statement): void;
  /** Gives the connection up and opens another. Whatever it carried has an unknown outcome. */
  reopen(): void;
}

/** Servers that a node has seen: it talks to no older one. */
export class KnownServer {
  system: string;
  timeline: number;

  constructor(known: { system: string; timeline: number } | null) {
    this.system = known?.system ?? "";
    this.timeline = known?.timeline ?? 0;
  }

  /** Takes what a new connection leads to. Returns false where nothing may be asked or believed there. */
  accepts(server: LogServer): boolean {
    if (server.isStandby || (this.system !== "" && server.system !== this.system)) return false;
    if (server.timeline < this.timeline) return false;
    this.system = server.system;
    this.timeline = server.timeline;
    return true;
  }
}

/** One connection, which carries one statement at a time. */
export class Channel {
  readonly #ports: ChannelPorts;
  #timeline: number | null = null;
  underway: { statement: Statement; began: Instant } | null = null;

  constructor(ports: ChannelPorts) {
    this.#ports = ports;
  }

  get isIdle(): boolean {
    return this.#timeline !== null && this.underway === null;
  }

  opened(server: LogServer): void {
    this.#timeline = server.timeline;
  }

  closed(): void {
    this.#timeline = null;
    this.underway = null;
  }

  /** Whether it leads to a server that was replaced since. */
  isOlderThan(known: KnownServer): boolean {
    return this.#timeline !== null && this.#timeline < known.timeline;
  }

  send(statement: Statement, now: Instant): void {
    this.underway = { statement, began: now };
    this.#ports.send(statement);
  }

  /** Returns what was asked. null: nothing was, and the answer is none. */
  answered(): { statement: Statement; began: Instant } | null {
    const asked = this.underway;
    this.underway = null;
    return asked;
  }

  waitedMs(now: Instant): number {
    return this.underway === null ? 0 : now.monotonicMs - this.underway.began.monotonicMs;
  }

  reopen(): void {
    this.closed();
    this.#ports.reopen();
  }
}
