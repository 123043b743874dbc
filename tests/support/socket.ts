import { expect } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";

/** Timeout that only failing tests reach; generous for a busy machine. */
const MESSAGE_TIMEOUT_MS = 15_000;

export interface Closed {
  code: number;
  reason: string;
}

/** WebSocket client that queues messages until a test takes them. */
export interface TestSocket {
  /** Sends strings unchanged, everything else as JSON. */
  send(message: JsonValue): void;
  /** Takes the next queued message; rejects after `timeoutMs`, or when the socket closes first. */
  next<T = JsonObject>(timeoutMs?: number): Promise<T>;
  /** Takes messages until one of this type arrives, dropping the others. */
  nextOf<T = JsonObject>(type: string, timeoutMs?: number): Promise<T>;
  /** Takes the next message, which must match (`toMatchObject`). */
  expect(shape: JsonObject, timeoutMs?: number): Promise<JsonObject>;
  /** Fails if a message is queued, or arrives within this time. */
  expectSilence(ms: number): Promise<void>;
  /** Queued messages. */
  readonly pending: readonly JsonObject[];
  /** Resolves when the socket is closed, by either side. */
  readonly closed: Promise<Closed>;
  /** Closes cleanly and waits for the end. */
  close(code?: number, reason?: string): Promise<Closed>;
  /** Drops the connection without a closing handshake, as a network failure does. */
  terminate(): void;
}

interface Waiter {
  give(message: JsonObject): void;
  fail(why: string): void;
}

/** Bun's class, even where the browser's types are in scope, whose class takes no headers. */
type BunWebSocketClass = new (
  url: string,
  options: { headers: Record<string, string>; tls: { rejectUnauthorized?: boolean } },
) => WebSocket & { terminate(): void };

/** Opens a socket. Rejects when the server refuses the upgrade. `url` begins with `ws://` or `wss://`. */
export async function openSocket(
  url: string,
  headers: Record<string, string> = {},
  tls: { rejectUnauthorized?: boolean } = {},
): Promise<TestSocket> {
  const pending: JsonObject[] = [];
  const waiters: Waiter[] = [];
  const socket = new (WebSocket as unknown as BunWebSocketClass)(url, { headers, tls });
  const closing = Promise.withResolvers<Closed>();
  const opening = Promise.withResolvers<void>();
  let closed: Closed | null = null;

  socket.onmessage = ({ data }) => {
    // The protocols send only JSON objects; anything else fails the test here.
    const message = JSON.parse(String(data)) as JsonObject;
    const waiter = waiters.shift();
    if (waiter === undefined) pending.push(message);
    else waiter.give(message);
  };
  socket.onopen = () => opening.resolve();
  socket.onclose = ({ code, reason }) => {
    closed = { code, reason };
    opening.reject(new Error(`${url} was not opened: ${code} ${reason}`));
    closing.resolve(closed);
    for (const waiter of waiters.splice(0)) waiter.fail(`the socket closed with ${code} ${reason}`);
  };
  await opening.promise;

  const next = <T = JsonObject>(timeoutMs = MESSAGE_TIMEOUT_MS): Promise<T> => {
    const first = pending.shift();
    // The test names the expected type, and its assertions check it.
    if (first !== undefined) return Promise.resolve(first as T);
    if (closed !== null) return Promise.reject(new Error(`the socket is closed with ${closed.code} ${closed.reason}`));
    return new Promise<T>((resolve, reject) => {
      const waiter: Waiter = {
        give(message) {
          clearTimeout(timer);
          resolve(message as T); // as above
        },
        fail(why) {
          clearTimeout(timer);
          reject(new Error(why));
        },
      };
      const timer = setTimeout(() => {
        waiters.splice(waiters.indexOf(waiter), 1);
        reject(new Error(`no message within ${timeoutMs} ms`));
      }, timeoutMs);
      waiters.push(waiter);
    });
  };

  return {
    send: (message) => socket.send(typeof message === "string" ? message : JSON.stringify(message)),
    next,
    async nextOf<T = JsonObject>(type: string, timeoutMs = MESSAGE_TIMEOUT_MS): Promise<T> {
      const until = Date.now() + timeoutMs;
      for (;;) {
        const message = await next(Math.max(1, until - Date.now()));
        if (message["type"] === type) return message as T; // as above
      }
    },
    async expect(shape, timeoutMs) {
      const message = await next(timeoutMs);
      expect(message).toMatchObject(shape);
      return message;
    },
    async expectSilence(ms) {
      await Bun.sleep(ms);
      expect(pending).toEqual([]);
    },
    pending,
    closed: closing.promise,
    close(code = 1000, reason) {
      socket.close(code, reason);
      return closing.promise;
    },
    terminate: () => socket.terminate(),
  };
}
