import type { Socket, SocketServer } from "../http/sockets.ts";

/** Somebody a topic delivers to. */
export interface Listener {
  readonly socket: Socket;
  readonly isClosed: boolean;
  /** Bytes that have been sent to it and not yet left. */
  readonly waitingBytes: number;
  /** Closes the socket when too much waits for it already; true when it did. Decisions 10. */
  closeIfSlow(): boolean;
  closeAsSlow(): void;
}

/** Those who get the same messages: a message is serialised once and published natively. */
export class Topic {
  readonly #name: string;
  readonly #sockets: SocketServer;
  readonly members = new Set<Listener>();

  constructor(name: string, sockets: SocketServer) {
    this.#name = name;
    this.#sockets = sockets;
  }

  join(listener: Listener): void {
    if (listener.isClosed) return;
    this.members.add(listener);
    listener.socket.subscribe(this.#name);
  }

  leave(listener: Listener): void {
    // A closed socket has left natively already.
    if (this.members.delete(listener) && listener.socket.readyState === WebSocket.OPEN) {
      listener.socket.unsubscribe(this.#name);
    }
  }

  /** `except` does not hear it. */
  publish(message: string, except: Listener | null = null): void {
    if (this.members.size === 0) return;
    for (const member of this.members) member.closeIfSlow();
    // A closed socket publishes nothing any more.
    if (except === null || except.isClosed) this.#sockets.publish(this.#name, message);
    else except.socket.publish(this.#name, message);
  }
}

export type Topics = () => Topic;

/** Names are numbers, so that no channel's name can meet another area's topic. */
export function createTopics(sockets: SocketServer): Topics {
  let count = 0;
  return () => new Topic(`realtime/${count++}`, sockets);
}
