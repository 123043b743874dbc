import type { Visiting } from "../../sockets/connection.ts";
import type { Naming } from "./subscriptions/model.ts";
import type { ServerMessage } from "./messages.ts";

/** Null where the connection has no user. */
export const userIdOf = (principal: Visiting): string | null => (principal.kind === "user" ? principal.auth.id : null);

/** Rights that a connection has lost, as `auth_refreshed` names them. */
export class Revoked {
  readonly #channels = new Set<string>();
  readonly #ids: string[] = [];

  add({ name, id }: Naming): void {
    this.#channels.add(name);
    if (id !== null) this.#ids.push(id);
  }

  get isEmpty(): boolean {
    return this.#channels.size === 0;
  }

  message(userId: string | null): ServerMessage {
    const message = { type: "auth_refreshed" as const, userId, revokedChannels: [...this.#channels] };
    return this.#ids.length === 0 ? message : { ...message, revokedIds: this.#ids };
  }
}
