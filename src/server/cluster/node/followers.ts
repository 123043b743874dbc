import { type Clock, pause } from "../../../kernel/clock.ts";
import type { Place } from "../protocol/statements.ts";
import { ALIVE_MS, FOLLOWERS_MAX, LEAVING_HEARD_MAX_MS, LEAVING_LOOK_MS, MESSAGES_WAITING_MAX } from "./limits.ts";
import { type OwnerMessage, textOf } from "./messages.ts";

const encoder = new TextEncoder();

/** One follower's open answer. Places replace one another while it does not read; other messages wait in order. */
class Follower {
  readonly body: ReadableStream<Uint8Array>;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #place: OwnerMessage | null = null;
  #isEnded = false;

  constructor(onEnd: () => void) {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => {
          const place = this.#place;
          this.#place = null;
          if (place !== null) this.#enqueue(place);
        },
        cancel: () => {
          this.#isEnded = true;
          onEnd();
        },
      },
      { highWaterMark: MESSAGES_WAITING_MAX },
    );
  }

  /** Sends a message. Returns false where the follower reads too slowly to be told anything. */
  send(message: OwnerMessage): boolean {
    if (this.#isEnded || this.#controller === null) return false;
    const room = this.#controller.desiredSize ?? 0;
    if (room > 0) this.#enqueue(message);
    else if (message.kind === "place") this.#place = message;
    else return false;
    return true;
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#controller?.close();
  }

  #enqueue(message: OwnerMessage): void {
    this.#controller?.enqueue(encoder.encode(textOf(message)));
  }
}

/** The followers that are connected to this owner. */
export class Followers {
  readonly #clock: Clock;
  readonly #place: () => { history: number; place: Place } | null;
  /** Followers by the number that each has chosen. */
  readonly #connected = new Map<number, Follower>();
  #announced = 0;
  #isLeft = false;
  #cancelAlive: () => void = () => {};

  /** `place` returns what may be announced; null: nothing. */
  constructor({ clock, place }: { clock: Clock; place: () => { history: number; place: Place } | null }) {
    this.#clock = clock;
    this.#place = place;
  }

  get count(): number {
    return this.#connected.size;
  }

  /** Answers a follower: with messages, for as long as it is connected. */
  connect(number: number): Response {
    this.#connected.get(number)?.end();
    if (this.#isLeft || this.#connected.size >= FOLLOWERS_MAX) return new Response(null, { status: 503 });
    const follower: Follower = new Follower(() => {
      if (this.#connected.get(number) === follower) this.#connected.delete(number);
    });
    this.#connected.set(number, follower);
    if (this.#connected.size === 1) this.#sayAlive();
    const place = this.#place();
    follower.send(place === null ? { kind: "alive" } : { kind: "place", ...place });
    return new Response(follower.body);
  }

  /** Tells all followers the last place, if it is another one than they were told. */
  announce(): void {
    const place = this.#place();
    if (place === null || place.place.position === this.#announced) return;
    this.#announced = place.place.position;
    this.#tell({ kind: "place", ...place });
  }

  hold(number: number, id: number, isHeld: boolean): void {
    this.#send(number, { kind: "hold", id, isHeld });
  }

  /**
   * Says that nothing more is to come, and who is to take over (null: whoever can). Resolves when all have heard it, and have ended their
   * connections; those that have not are ended after LEAVING_HEARD_MAX_MS.
   */
  async leave(to: string | null): Promise<void> {
    this.#isLeft = true;
    this.#cancelAlive();
    this.#tell({ kind: "leaving", to });
    const givesUpAt = performance.now() + LEAVING_HEARD_MAX_MS;
    while (this.#connected.size > 0 && performance.now() < givesUpAt) await pause(this.#clock, LEAVING_LOOK_MS);
    for (const follower of this.#connected.values()) follower.end();
    this.#connected.clear();
  }

  /** Asks all followers to tell PostgreSQL as soon as they show this position. */
  confirm(position: number): void {
    this.#tell({ kind: "confirm", position });
  }

  #sayAlive(): void {
    this.#cancelAlive();
    if (this.#connected.size === 0) return;
    this.#tell({ kind: "alive" });
    this.#cancelAlive = this.#clock.after(ALIVE_MS, () => this.#sayAlive());
  }

  #tell(message: OwnerMessage): void {
    for (const number of this.#connected.keys()) this.#send(number, message);
  }

  #send(number: number, message: OwnerMessage): void {
    const follower = this.#connected.get(number);
    if (follower === undefined || follower.send(message)) return;
    this.#connected.delete(number);
    follower.end();
  }
}
