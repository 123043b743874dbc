import type { Clock } from "../../../kernel/clock.ts";
import type { OpenInner } from "../../http/listening/receivers.ts";
import { InnerServer } from "../../http/workers/inner-server.ts";
import type { Place } from "../protocol/statements.ts";
import type { NodeCredentials } from "./credentials.ts";
import { Followers } from "./followers.ts";
import { FOLLOW_PATH } from "./messages.ts";

export interface NodePortOptions {
  hostname: string;
  port: number;
  credentials: NodeCredentials;
  clock: Clock;
  /** Returns the last place that may be announced; null: nothing. */
  place(): { history: number; place: Place } | null;
  /** Answers a command of an operator, by its path. null: there is none of that name. */
  command(path: string, request: Request): Promise<Response> | null;
}

/**
 * The port at which an owner takes requests from other nodes, and answers nobody else: whoever has no certificate of the cluster is
 * refused in the handshake of TLS.
 */
export class NodePort {
  readonly followers: Followers;
  readonly #options: NodePortOptions;

  constructor(options: NodePortOptions) {
    this.#options = options;
    this.followers = new Followers(options);
  }

  readonly open: OpenInner = (serving) => {
    const { hostname, port, credentials, command } = this.#options;
    const { cert, key, ca, secret } = credentials;
    return new InnerServer(
      {
        at: { hostname, port, tls: { cert, key, ca } },
        secret,
        hold: ({ worker, id }, isHeld) => this.followers.hold(worker, id, isHeld),
        told: (request, { worker }) => {
          const { pathname } = new URL(request.url);
          if (pathname === FOLLOW_PATH) return this.followers.connect(worker);
          return command(pathname, request) ?? new Response(null, { status: 404 });
        },
        stopped: async () => this.followers.leave(),
      },
      serving,
    );
  };
}
