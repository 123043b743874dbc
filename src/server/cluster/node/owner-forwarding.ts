import { type Clock, pause } from "../../../kernel/clock.ts";
import { clusterRefusal } from "../../../kernel/errors.ts";
import type { Forwarding, SocketLink, Upstream } from "../../http/workers/forwarding.ts";
import { OWNER_WAIT_MS, RECONNECT_MS, WAITING_MAX } from "./limits.ts";
import { ANSWERS_PATH } from "./messages.ts";
import type { OwnerLink } from "./owner-link.ts";

/** Passes a follower's requests on to whoever is the owner, and waits a while for one. */
export class OwnerForwarding {
  readonly #clock: Clock;
  readonly #link: Pick<OwnerLink, "forwarding">;
  readonly #answered: (request: Request, answer: Response) => void;
  readonly #waiting = new Set<(forwarding: Forwarding | null) => void>();

  /** `answered` is told of each answer of the owner. */
  constructor(options: {
    clock: Clock;
    link: Pick<OwnerLink, "forwarding">;
    answered(request: Request, answer: Response): void;
  }) {
    this.#clock = options.clock;
    this.#link = options.link;
    this.#answered = options.answered;
  }

  /** Takes a change of the link: requests that have waited for an owner go on. */
  changed(): void {
    const { forwarding } = this.#link;
    if (forwarding === null) return;
    for (const goOn of this.#waiting) goOn(forwarding);
  }

  /** Ends what waits. */
  stop(): void {
    for (const goOn of this.#waiting) goOn(null);
  }

  /** Forwards a request. Errors: 503 `no_owner` where nobody has taken it, `unknown_outcome` where somebody may have. */
  async forward(request: Request, peer: string): Promise<Response> {
    const answer = await this.#carried(request, (forwarding) => forwarding.forward(request, peer));
    this.#answered(request, answer);
    return answer;
  }

  /** Opens a WebSocket for the request. Errors: as `forward`. */
  open(request: Request, peer: string): Promise<Upstream | Response> {
    return this.#carried(request, (forwarding) => forwarding.open(request, peer));
  }

  /** Reports what this node has answered itself; without an owner nobody counts it. */
  report(answers: string): void {
    void this.#link.forwarding?.tell(ANSWERS_PATH, { method: "POST", body: answers }).catch(() => {});
  }

  /** Opens the link on which this node holds WebSockets for the owner; null: there is none now. */
  link(): SocketLink | null {
    return this.#link.forwarding?.link() ?? null;
  }

  async #carried<T>(request: Request, carry: (forwarding: Forwarding) => Promise<T>): Promise<T> {
    const isRead = request.method === "GET" || request.method === "HEAD";
    for (let tries = 0; ; tries++) {
      const forwarding = await this.#connected(request);
      if (forwarding === null) throw clusterRefusal("no_owner");
      try {
        return await carry(forwarding);
      } catch (cause) {
        // A read has changed nothing, and is asked once more: the owner has just gone.
        if (isRead && tries === 0 && !request.signal.aborted) {
          await pause(this.#clock, RECONNECT_MS);
          continue;
        }
        throw clusterRefusal(isRead ? "no_owner" : "unknown_outcome", cause);
      }
    }
  }

  #connected({ signal }: Request): Promise<Forwarding | null> | Forwarding | null {
    const { forwarding } = this.#link;
    if (forwarding !== null || this.#waiting.size >= WAITING_MAX || signal.aborted) return forwarding;
    const { promise, resolve } = Promise.withResolvers<Forwarding | null>();
    const goOn = (found: Forwarding | null): void => {
      this.#waiting.delete(goOn);
      signal.removeEventListener("abort", onAbort);
      cancel();
      resolve(found);
    };
    const onAbort = (): void => goOn(null);
    const cancel = this.#clock.after(OWNER_WAIT_MS, () => goOn(null));
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.add(goOn);
    return promise;
  }
}
