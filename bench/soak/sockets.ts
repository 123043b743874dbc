import type { JsonObject } from "../../src/kernel/json/json.ts";
import type { Client } from "./client.ts";
import { ROOMS, TEAMS } from "./config.ts";

/** Lifetime of a connection, after which another one replaces it. */
const LIFE_MS = 5_000;
const ACTION_EVERY_MS = 200;

interface Visit {
  url: string;
  hello: readonly JsonObject[];
  /** Type of the response to the last message of `hello`. */
  greeting: string;
  every: () => JsonObject;
}

/** Follows changes and sends presence until `isOver`. */
export const watchTable = (client: Client, isOver: () => boolean, onError: (what: string) => void): Promise<void> =>
  comeAndGo(isOver, onError, () => ({
    url: `${client.platform.wsUrl}/api/realtime?channel=presence:lobby`,
    hello: [
      { type: "auth", token: client.user.token },
      { type: "subscribe", channel: "presence:lobby" },
      { type: "track", state: { name: client.prefix } },
      { type: "subscribe", channel: "realtime:shared:posts" },
      { type: "subscribe", channel: `realtime:teams:team${client.random.below(TEAMS)}:tasks` },
    ],
    greeting: "subscribed",
    every: () => ({ type: "ping" }),
  }));

/** Plays in a room until `isOver`. */
export const playInRoom = (client: Client, isOver: () => boolean, onError: (what: string) => void): Promise<void> =>
  comeAndGo(isOver, onError, () => ({
    url: `${client.platform.wsUrl}/api/room?namespace=game&id=r${client.random.below(ROOMS)}`,
    hello: [{ type: "auth", token: client.user.token }, { type: "join" }],
    greeting: "sync",
    every: () => ({
      ...{ type: "send", actionType: "move", requestId: "1" },
      payload: { x: client.random.below(100), y: client.random.below(100) },
    }),
  }));

async function comeAndGo(isOver: () => boolean, onError: (what: string) => void, next: () => Visit): Promise<void> {
  while (!isOver()) await visit(next(), isOver, onError);
}

/** Serializes openings, as unauthenticated connections per address are limited. */
let doorway: Promise<void> = Promise.resolve();

async function visit({ url, hello, greeting, every }: Visit, isOver: () => boolean, onError: (what: string) => void) {
  const turn = doorway;
  const entered = Promise.withResolvers<void>();
  doorway = entered.promise;
  await turn;
  const socket = new WebSocket(url);
  const closed = new Promise<void>((resolve) => {
    socket.onclose = () => resolve();
  });
  socket.onerror = () => onError(`${url} failed`);
  socket.onopen = () => {
    for (const message of hello) socket.send(JSON.stringify(message));
  };
  const greeted = new Promise<void>((resolve) => {
    socket.onmessage = ({ data }) => {
      const text = String(data);
      if (text.startsWith(`{"type":"${greeting}"`)) resolve();
      if (/^\{"type":"(?:error|action_error|auth_error)"/.test(text)) onError(text);
    };
  });
  await Promise.race([greeted, closed]);
  entered.resolve();
  const until = Date.now() + LIFE_MS;
  while (Date.now() < until && !isOver() && socket.readyState === WebSocket.OPEN) {
    await Bun.sleep(ACTION_EVERY_MS);
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(every()));
  }
  if (socket.readyState !== WebSocket.OPEN) {
    onError(`${url} was closed`);
    await Bun.sleep(ACTION_EVERY_MS);
  }
  socket.close(1000);
  await closed;
}
