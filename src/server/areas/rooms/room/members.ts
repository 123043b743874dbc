import type { Player } from "../../../config/types.ts";
import type { Member, PresentAuth, PresentPlayer, RoomConnection } from "../types.ts";

/** Players of a room with their connections, by user id. */
export class Members {
  readonly #byUser = new Map<string, Member>();
  readonly #presentAuth: PresentAuth;

  constructor(presentAuth: PresentAuth) {
    this.#presentAuth = presentAuth;
  }

  get size(): number {
    return this.#byUser.size;
  }

  get(userId: string): Member | undefined {
    return this.#byUser.get(userId);
  }

  add({ player, sessionId }: PresentPlayer): Member {
    const member: Member = { player, sessionId, connections: new Set(), cancelGrace: null };
    this.#byUser.set(player.userId, member);
    return member;
  }

  /** Removes a member; false when it was not in the room. A later member of the same user stays. */
  remove(member: Member): boolean {
    if (this.#byUser.get(member.player.userId) !== member) return false;
    member.cancelGrace?.();
    member.cancelGrace = null;
    return this.#byUser.delete(member.player.userId);
  }

  /** Returns the current player: from an open connection, else from the user's session. */
  playerOf(member: Member): Player {
    for (const connection of member.connections) {
      if (connection.closeCode !== null) continue;
      member.player = connection.player();
      member.sessionId = connection.sessionId;
      return member.player;
    }
    const { player } = member;
    const auth = this.#presentAuth(member.sessionId, player.auth);
    if (auth !== null && auth !== player.auth) member.player = Object.freeze({ ...player, role: auth.role, auth });
    return member.player;
  }

  players(): Player[] {
    return Array.from(this.#byUser.values(), (member) => this.playerOf(member));
  }

  /** Returns the players as they are saved. */
  present(): PresentPlayer[] {
    return Array.from(this.#byUser.values(), (member) => ({
      player: this.playerOf(member),
      sessionId: member.sessionId,
    }));
  }

  all(): Iterable<Member> {
    return this.#byUser.values();
  }

  *connections(): Iterable<RoomConnection> {
    for (const { connections } of this.#byUser.values()) yield* connections;
  }

  /** Iterates over the connections of one user; when `to` is null, of all users but those in `except`. */
  *reached(to: string | null, except: readonly string[]): Iterable<RoomConnection> {
    if (to !== null) {
      // Looked up directly: a handler that sends to every player would otherwise visit every connection for each.
      yield* this.#byUser.get(to)?.connections ?? [];
      return;
    }
    const left = new Set(except);
    for (const [userId, { connections }] of this.#byUser) if (!left.has(userId)) yield* connections;
  }

  /** Whether a player's place is kept for a reconnect. */
  get hasAbsent(): boolean {
    for (const { connections } of this.#byUser.values()) if (connections.size === 0) return true;
    return false;
  }
}
