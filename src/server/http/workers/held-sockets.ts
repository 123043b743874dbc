import type { Clock } from "../../../kernel/clock.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { type NearSocket, NearSockets, UNREACHABLE } from "../../sockets/far/near-sockets.ts";
import { CLOSE } from "../../sockets/limits.ts";
import type { SocketLink } from "./forwarding.ts";

/** A socket that is not open yet, and what asks for it over the link on which it is held. */
export interface BegunSocket {
  socket: NearSocket;
  ask: SocketLink["ask"];
}

/** The time after which a link that has ended is opened again. */
const AGAIN_MS = 100;
/** The time for which a client waits for a link. */
const LINK_MAX_MS = 2_000;

/** Holds WebSockets for the main process, over a link that is opened again when it ends. */
export class HeldSockets {
  readonly sockets: NearSockets;
  readonly #openLink: () => SocketLink | null;
  #link: SocketLink | null = null;
  /** Resolves when the link is open. */
  #connected = Promise.withResolvers<void>();
  readonly #clock: Clock;
  #cancelAgain = () => {};
  #isLeaving = false;
  #isStopped = false;

  /**
   * `publish` sends a message to all sockets of this process that have subscribed to a topic. `link` opens a link; null: there is nobody
   * to link to now.
   */
  constructor({
    link,
    publish,
    clock,
  }: {
    link: () => SocketLink | null;
    publish(topic: string, message: string): void;
    clock: Clock;
  }) {
    this.#openLink = link;
    this.#clock = clock;
    this.sockets = new NearSockets(publish);
    this.#open();
  }

  /** Begins a socket, once there is a link. Errors: there is none in time. */
  async begin(): Promise<BegunSocket> {
    await endsWithin(this.#connected.promise, LINK_MAX_MS, this.#clock);
    const socket = this.sockets.begin();
    if (socket === null || this.#link === null) throw new Error("there is no link to the main process");
    return { socket, ask: this.#link.ask };
  }

  /** Notes that the other end leaves, and that somebody takes its place: what it does not close itself is closed with 1001. */
  leave(): void {
    this.#isLeaving = true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelAgain();
    this.#link?.socket.close();
  }

  #open(): void {
    const link = this.#openLink();
    this.#link = link;
    if (link === null) {
      this.#again();
      return;
    }
    const { socket } = link;
    socket.binaryType = "nodebuffer";
    socket.addEventListener("open", () => {
      this.sockets.connected((frame) => socket.send(frame));
      this.#connected.resolve();
    });
    socket.addEventListener("message", ({ data }) => this.sockets.receive(data));
    socket.addEventListener("close", () => {
      this.#connected = Promise.withResolvers<void>();
      if (this.#isLeaving) this.sockets.lost(CLOSE.goingAway, "The server is stopping");
      else this.sockets.lost(CLOSE.tryLater, UNREACHABLE);
      this.#isLeaving = false;
      this.#again();
    });
  }

  #again(): void {
    if (!this.#isStopped) this.#cancelAgain = this.#clock.after(AGAIN_MS, () => this.#open());
  }
}
