import type { Player } from "../config/room-types.ts";
import type { Member, RoomConnection } from "./types.ts";

/** Who is in a room: by user, each with the connections that follow it. */
export class Members {
  readonly #byUser = new Map<string, Member>();

  get size(): number {
    return this.#byUser.size;
  }

  get(userId: string): Member | undefined {
    return this.#byUser.get(userId);
  }

  add(player: Player): Member {
    const member: Member = { player, connections: new Set(), cancelGrace: null };
    this.#byUser.set(player.userId, member);
    return member;
  }

  /** Whether this member was there; a later one of the same user stays. */
  remove(member: Member): boolean {
    if (this.#byUser.get(member.player.userId) !== member) return false;
    member.cancelGrace?.();
    member.cancelGrace = null;
    return this.#byUser.delete(member.player.userId);
  }

  players(): Player[] {
    return [...this.#byUser.values()].map(({ player }) => player);
  }

  all(): Iterable<Member> {
    return this.#byUser.values();
  }

  *connections(): Iterable<RoomConnection> {
    for (const { connections } of this.#byUser.values()) yield* connections;
  }

  /** Whether somebody's place is kept for a reconnect. */
  get hasAbsent(): boolean {
    for (const { connections } of this.#byUser.values()) if (connections.size === 0) return true;
    return false;
  }
}
