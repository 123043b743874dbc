import { type Clock, pause } from "../../../kernel/clock.ts";
import { UNDER_WAY_MAX_MS } from "../../../kernel/limits.ts";
import type { OpenInner } from "../../http/listening/receivers.ts";
import { InnerServer } from "../../http/workers/inner-server.ts";
import type { Place } from "../protocol/statements.ts";
import type { NodeCredentials } from "./credentials.ts";
import { Followers } from "./followers.ts";
import { LEAVING_LOOK_MS, SOCKETS_TOLD_MAX_MS } from "./limits.ts";
import { ANSWERS_PATH, FOLLOW_PATH } from "./messages.ts";

export interface NodePortOptions {
  hostname: string;
  port: number;
  credentials: NodeCredentials;
  clock: Clock;
  /** Returns the last place that may be announced; null: nothing. */
  place(): { history: number; place: Place } | null;
  /** Takes a follower's report of what it has answered. */
  reported(answers: string): void;
  /** Answers a command of an operator, by its path. null: there is none of that name. */
  command(path: string, request: Request): Promise<Response> | null;
}

/**
 * The port at which an owner takes requests from other nodes, and answers nobody else: whoever has no certificate of the cluster is
 * refused in the handshake of TLS.
 */
export class NodePort {
  readonly #options: NodePortOptions;
  #followers: Followers;
  #inner: InnerServer | null = null;
  /** The node that is to take over when this one leaves; null: whoever can. */
  successor: string | null = null;

  constructor(options: NodePortOptions) {
    this.#options = options;
    this.#followers = new Followers(options);
  }

  get followers(): Followers {
    return this.#followers;
  }

  async #take(report: Request): Promise<Response> {
    this.#options.reported(await report.text());
    return new Response(null, { status: 204 });
  }

  /** Resolves when followers have got everything that was sent to sockets that they hold, or have lost those. */
  async socketsTold(): Promise<void> {
    await this.#inner?.arrived(SOCKETS_TOLD_MAX_MS);
  }

  /** Opens the port, for as long as this node is the owner. */
  readonly open: OpenInner = (serving) => {
    const followers = new Followers(this.#options);
    this.#followers = followers;
    const { hostname, port, credentials, command, clock } = this.#options;
    const { cert, key, ca, secret } = credentials;
    const inner: InnerServer = new InnerServer(
      {
        clock,
        at: { hostname, port, tls: { cert, key, ca } },
        secret,
        hold: ({ worker, id }, isHeld) => followers.hold(worker, id, isHeld),
        told: (request, { worker }) => {
          const { pathname } = new URL(request.url);
          if (pathname === FOLLOW_PATH) return followers.connect(worker);
          if (pathname === ANSWERS_PATH) return this.#take(request);
          return command(pathname, request) ?? new Response(null, { status: 404 });
        },
        stopped: async () => {
          await followers.leave(this.successor);
          const givesUpAt = performance.now() + UNDER_WAY_MAX_MS;
          // Requests that were on their way when the followers were told still come.
          do await pause(clock, LEAVING_LOOK_MS);
          while (inner.pendingRequests > 0 && performance.now() < givesUpAt);
        },
      },
      serving,
    );
    this.#inner = inner;
    return inner;
  };
}
