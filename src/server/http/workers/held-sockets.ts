import type { Clock } from "../../../kernel/clock.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { type NearSocket, NearSockets } from "../../sockets/far/near-sockets.ts";
import type { Forwarding } from "./forwarding.ts";

/** The time after which a link that has ended is opened again. */
const AGAIN_MS = 100;
/** The time for which a client waits for a link. */
const LINK_MAX_MS = 2_000;

/** Holds WebSockets for the main process, over a link that is opened again when it ends. */
export class HeldSockets {
  readonly sockets: NearSockets;
  readonly #forwarding: Pick<Forwarding, "link" | "ask">;
  #link: WebSocket | null = null;
  /** Resolves when the link is open. */
  #connected = Promise.withResolvers<void>();
  readonly #clock: Clock;
  #cancelAgain = () => {};
  #isStopped = false;

  /** `publish` sends a message to all sockets of this process that have subscribed to a topic. */
  constructor({
    forwarding,
    publish,
    clock,
  }: {
    forwarding: Pick<Forwarding, "link" | "ask">;
    publish(topic: string, message: string): void;
    clock: Clock;
  }) {
    this.#forwarding = forwarding;
    this.#clock = clock;
    this.sockets = new NearSockets(publish);
    this.#open();
  }

  /** Begins a socket, once there is a link. Errors: there is none in time. */
  async begin(): Promise<NearSocket> {
    await endsWithin(this.#connected.promise, LINK_MAX_MS, this.#clock);
    const socket = this.sockets.begin();
    if (socket === null) throw new Error("there is no link to the main process");
    return socket;
  }

  /** Asks for a socket: see `Forwarding.ask`. */
  ask(...asked: Parameters<Forwarding["ask"]>): ReturnType<Forwarding["ask"]> {
    return this.#forwarding.ask(...asked);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelAgain();
    this.#link?.close();
  }

  #open(): void {
    const link = this.#forwarding.link();
    link.binaryType = "nodebuffer";
    this.#link = link;
    link.addEventListener("open", () => {
      this.sockets.connected((frame) => link.send(frame));
      this.#connected.resolve();
    });
    link.addEventListener("message", ({ data }) => this.sockets.receive(data));
    link.addEventListener("close", () => {
      this.#connected = Promise.withResolvers<void>();
      this.sockets.lost();
      if (!this.#isStopped) this.#cancelAgain = this.#clock.after(AGAIN_MS, () => this.#open());
    });
  }
}
