import { SERVICE_KEY } from "../../platform.ts";
import type { DrillNode } from "./drill-cluster.ts";

const POSITION = "platform-position";
/** A request that is not answered for so long is given up: a paused node never answers. */
const GIVE_UP_MS = 5_000;
/** The time for which a node is avoided that has not answered. */
const AVOIDED_MS = 2_000;

export interface Asked {
  method?: "GET" | "POST" | "PATCH";
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** Bearer of the request; the service key by default. */
  token?: string;
  /** Whether it is asked of what the owner has. */
  isLatest?: boolean;
  /** The time after which it is given up. */
  giveUpMs?: number;
}

export interface Told {
  /** 0: there was no answer. */
  status: number;
  // Whatever the server says: each use looks at what it needs.
  // biome-ignore lint/suspicious/noExplicitAny: the checks look at what they need
  body: any;
  startMs: number;
  endMs: number;
}

/** Counts of how requests ended, over all clients, and nodes that have not answered lately. */
export class Tally {
  readonly counts = new Map<string, number>();
  readonly #silentUntil = new Map<string, number>();

  /** Takes that a node has not answered. */
  isSilent(node: string): void {
    this.#silentUntil.set(node, performance.now() + AVOIDED_MS);
  }

  answers(node: string): boolean {
    return (this.#silentUntil.get(node) ?? 0) < performance.now();
  }

  add(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  of(what: string): number {
    return this.counts.get(what) ?? 0;
  }
}

/** One client, which asks now this node and now that one, and gives back the newest position that it was told. */
export class DrillClient {
  readonly #tally: Tally;
  #position: string | null = null;

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  async ask(
    node: DrillNode,
    path: string,
    { method = "GET", body, headers, token, isLatest, giveUpMs = GIVE_UP_MS }: Asked = {},
  ): Promise<Told> {
    const startMs = performance.now();
    try {
      const response = await fetch(node.url + path, {
        method,
        headers: {
          ...(token === undefined ? { "x-platform-service-key": SERVICE_KEY } : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(this.#position === null ? {} : { [POSITION]: this.#position }),
          ...(isLatest === true ? { "platform-consistency": "latest" } : {}),
          ...headers,
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(giveUpMs),
      });
      const text = await response.text();
      const endMs = performance.now();
      this.#position = response.headers.get(POSITION) ?? this.#position;
      const told = { status: response.status, body: text === "" ? null : JSON.parse(text), startMs, endMs };
      const code = told.body?.data?.cluster?.code;
      this.#tally.add(code === undefined ? String(told.status) : `${told.status} ${code}`);
      return told;
    } catch {
      this.#tally.add("no answer");
      this.#tally.isSilent(node.nodeUrl);
      return { status: 0, body: null, startMs, endMs: performance.now() };
    }
  }
}
