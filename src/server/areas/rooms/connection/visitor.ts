import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import type { LookupWatch } from "../../../access/lookups/lookups.ts";
import type { Auth, Player } from "../../../config/types.ts";
import type { Connection, SignedIn } from "../../../sockets/connection.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import { errorMessage } from "../messages.ts";
import type { LiveRoom } from "../room/room.ts";
import type { RoomAddress, RoomConnection } from "../types.ts";
import { Outbox, type SyncTurns } from "./outbox.ts";

export type VisitorConnection = Connection<Visitor>;

/** State of a connection to a room, and the room's interface to the connection. */
export class Visitor implements RoomConnection {
  readonly address: RoomAddress;
  /** Room of the connection; null until a `join` has been allowed. */
  room: LiveRoom | null = null;
  /** Whether the last `join` requested the list of players. */
  wantsPlayers = false;
  readonly #outbox: Outbox;
  #connection: VisitorConnection | null = null;
  /** Right of the join rule; null before a join. */
  #right: StandingRight | null = null;
  /** Whether the connection was expelled. The room may still answer its earlier messages, which are dropped. */
  #isExpelled = false;
  #player: { principal: SignedIn; player: Player } | null = null;

  constructor(address: RoomAddress, deps: { turn: TurnBudget; syncs: SyncTurns }) {
    this.address = address;
    this.#outbox = new Outbox({
      turn: deps.turn,
      syncs: deps.syncs,
      charsMax: address.namespace.limits.backlogMaxBytes,
      write: (text) => this.#authenticated.sendText(text),
      whenRead: () => whenRead(this.#authenticated),
      onFull: () => this.#authenticated.closeAsSlow(),
    });
  }

  /** Takes the connection once it has authenticated. Rooms only get authenticated ones. */
  authenticated(connection: VisitorConnection): void {
    this.#connection = connection;
  }

  /** Begins a join: texts of the room are held until it is refused, or its right is known to be current. */
  joining(): void {
    this.#outbox.pause();
  }

  refused(): void {
    this.#outbox.resume();
  }

  /**
   * Ends a join that the rule has allowed to `auth`. `mayStay` evaluates the rule again when its lookups have changed. Texts wait
   * until the right is released. [RM221]
   */
  joined(
    room: LiveRoom,
    { right, auth }: { right: StandingRight; auth: Auth },
    mayStay: (auth: Auth, watch: LookupWatch) => MaybePromise<boolean>,
  ): void {
    this.room = room;
    this.#right?.end();
    this.#right = right;
    right.owner = {
      ask: (watch) => {
        const asked = this.#principal.auth;
        return chain(mayStay(asked, watch), (isAllowed) => {
          const isAboutNow = this.#principal.auth === asked;
          // The answer is about the previous user, so the rule must be evaluated again.
          if (!isAboutNow) right.touch();
          return isAllowed || !isAboutNow ? null : () => this.#expel();
        });
      },
      touched() {},
      hold: () => {
        this.#outbox.pause();
        return () => this.#outbox.resume();
      },
    };
    // The user changed while onJoin ran.
    if (this.#principal.auth !== auth) right.touch();
    right.hold();
  }

  /** Expels the connection from the room. It stays open, as after a refused join, and receives nothing more of the room. */
  #expel(): void {
    const { room } = this;
    this.room = null;
    this.#isExpelled = true;
    // Cleared first: ending the right releases the held texts.
    this.#outbox.clear();
    this.#right?.end();
    this.#right = null;
    room?.expel(this);
    this.#authenticated.sendText(errorMessage("JOIN_DENIED", "Access denied"));
  }

  /** Ends the connection's part in the room. */
  closed(code: number): void {
    this.#right?.end();
    this.#outbox.clear();
    this.room?.connectionClosed(this, code);
  }

  /** Sends the waiting texts before the server closes the connection. */
  finish(): void {
    if (this.closeCode === null) this.#outbox.finish();
  }

  // RoomConnection

  get id(): string {
    return this.#authenticated.id;
  }

  get userId(): string {
    return this.#principal.auth.id;
  }

  get sessionId(): string {
    return this.#principal.sessionId;
  }

  get closeCode(): number | null {
    return this.#authenticated.closeCode;
  }

  player(): Player {
    const principal = this.#principal;
    if (this.#player?.principal !== principal) {
      const { auth } = principal;
      const player = Object.freeze({ userId: auth.id, connectionId: this.id, role: auth.role, auth });
      this.#player = { principal, player };
    }
    return this.#player.player;
  }

  send(text: string): void {
    if (this.closeCode === null && !this.#isExpelled) this.#outbox.send(text);
  }

  sendDelta(text: string): void {
    if (this.closeCode === null) this.#outbox.send(text, "delta");
  }

  hold(): void {
    // The connection is in the room.
    this.#isExpelled = false;
    if (this.closeCode === null) this.#outbox.hold();
  }

  release(syncText: string): void {
    if (this.closeCode === null) this.#outbox.release(syncText);
  }

  end(code: number, reason: string, text: string): void {
    if (this.closeCode !== null) return;
    this.#outbox.finish();
    this.#authenticated.sendText(text);
    this.#authenticated.end(code, reason);
  }

  get #authenticated(): VisitorConnection {
    if (this.#connection === null) throw new Error("the connection has not authenticated");
    return this.#connection;
  }

  get #principal(): SignedIn {
    const { principal } = this.#authenticated;
    if (principal?.kind !== "user") throw new Error("the connection has not authenticated");
    return principal;
  }
}

/** Resolves when the client has read everything sent, or the connection has ended. */
async function whenRead(connection: VisitorConnection): Promise<void> {
  while (connection.waitingBytes > 0) await connection.drained();
}
