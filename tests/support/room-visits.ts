import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { openSocket, type SignedIn, type TestPlatform, type TestSocket } from "./index.ts";
import { until } from "./until.ts";

/** Config of rooms whose handlers do one thing each. */
export const CONFIG = `{
  auth: { anonymous: true },
  rooms: {
    aside: { access: { join: true } },
    game: {
      messageRate: 200,
      maxPlayers: 3,
      authTimeout: 800,
      reconnectTimeout: 500,
      maxStateSize: 4096,
      access: {
        join: (auth, roomId) => {
          if (roomId === "broken") throw new Error("a mistake");
          return roomId !== "closed" || auth.role === "admin";
        },
        action: (auth, roomId, actionType, payload) => {
          if (actionType === "early") throw new Refusal("not before noon");
          if (actionType === "confused") throw new Error("a mistake in the rule");
          return actionType !== "forbidden";
        },
      },
      onCreate(room) {
        if (room.id === "uncreatable") throw new Error("not today");
        room.setShared({ log: [], count: 0 });
      },
      onJoin(room, player) {
        if (room.id === "picky") {
          room.setShared({ seen: true });
          throw new Error("not you");
        }
        room.setShared((state) => ({ ...state, log: [...state.log, "join"] }));
        room.sendTo(player.userId, "welcome", { players: room.players().length });
      },
      onLeave(room, player, reason) {
        room.setShared((state) => ({ ...state, log: [...state.log, reason] }));
      },
      onDestroy(room) {
        room.setServer((state) => ({ ...state, destroyed: (state.destroyed ?? 0) + 1 }));
      },
      actions: {
        add(room, player, payload) {
          room.setShared((state) => ({ ...state, count: state.count + payload.by }));
          return room.shared.count;
        },
        async slowAdd(room, player, payload) {
          await new Promise((done) => setTimeout(done, 50));
          room.setShared((state) => ({ ...state, count: state.count * 2 + payload.by }));
          return room.shared.count;
        },
        set: (room, player, payload) => room.setShared((state) => ({ ...state, ...payload })),
        mutate(room) {
          room.setShared((draft) => { draft.log.push("mutated"); draft.count += 100; return draft; });
        },
        frozen: (room) => { room.shared.count = 5; },
        mine(room, player, payload) { room.setPlayer(player.userId, payload); },
        hand: (room, player, payload) => room.setPlayer(payload.to, { cards: payload.cards }),
        fail(room, player) {
          room.setShared({ wrong: true });
          room.setPlayer(player.userId, { wrong: true });
          room.setServer({ wrong: true });
          room.setMetadata({ wrong: true });
          room.send("wrong", null);
          room.setTimer("tick", 1);
          room.kick(player.userId);
          throw new Error("not your turn");
        },
        forbidden: () => "never",
        early: () => "never",
        confused: () => "never",
        whoami: (room, player) => player,
        nothing: () => {},
        unsayable: (room) => { room.setShared((s) => ({ ...s, count: -1 })); return 1n; },
        tell(room, player, payload) { room.send("news", payload, { except: [player.userId] }); },
        whisper: (room, player, payload) => room.sendTo(payload.to, "secret", payload.text),
        kick: (room, player, payload) => room.kick(payload.userId),
        server: (room) => room.server,
        read: (room) => ({ shared: room.shared, metadata: room.metadata }),
        nulls: (room) => room.setShared((state) => ({ ...state, log: null })),
        proto: (room) => room.setShared(JSON.parse('{"__proto__":{"x":1}}')),
        dots: (room) => room.setShared({ "a.b": 1 }),
        alarm(room, player, payload) { room.setTimer("tick", payload.ms, payload); },
        slowly: async (room, player, payload) => {
          await new Promise((done) => setTimeout(done, payload.ms));
          room.setShared((state) => ({ ...state, slowly: true }));
          return "done";
        },
        rename: (room, player, payload) => room.setMetadata(payload),
        db: async (room) => (await room.app.users.get("nobody")) === null,
      },
      timers: {
        tick(room, data) {
          room.send("tick", data);
          room.setMetadata({ ...room.metadata, ticks: (room.metadata.ticks ?? 0) + 1 });
        },
      },
    },
    open: { access: { join: true } },
    strict: { access: { join: true }, actions: { hit: () => 1 } },
    quick: { messageRate: 5, access: { join: true }, actions: { hit: () => 1 } },
    denied: { actions: { hit: () => 1 } },
  },
}`;

export interface RoomVisits {
  connect(id: string, namespace?: string): Promise<TestSocket>;
  /** Connects and authenticates. */
  authenticate(user: SignedIn, id: string, namespace?: string): Promise<TestSocket>;
  /** Authenticates, joins, and takes the resulting messages. */
  enter(user: SignedIn, id: string, namespace?: string): Promise<TestSocket & { sync: JsonObject }>;
  /** Sends an action and returns its reply; drops earlier messages. */
  act(socket: TestSocket, actionType: string, payload?: JsonValue): Promise<JsonObject>;
  /** Resolves when the server has processed everything that this socket sent; takes messages received until then. */
  flush(socket: TestSocket): Promise<JsonObject[]>;
  /** Resolves when this many rooms are in memory. */
  untilInMemory(count: number): Promise<void>;
  closeAll(): Promise<void>;
}

export function roomVisits(platform: () => TestPlatform): RoomVisits {
  const opened: TestSocket[] = [];
  let requestId = 0;

  const connect: RoomVisits["connect"] = async (id, namespace = "game") => {
    const socket = await openSocket(`${platform().wsUrl}/api/room?namespace=${namespace}&id=${id}`);
    opened.push(socket);
    return socket;
  };
  const authenticate: RoomVisits["authenticate"] = async (user, id, namespace) => {
    const socket = await connect(id, namespace);
    socket.send({ type: "auth", token: user.token });
    await socket.expect({ type: "auth_success", userId: user.id });
    return socket;
  };
  return {
    connect,
    authenticate,
    async enter(user, id, namespace) {
      const socket = await authenticate(user, id, namespace);
      socket.send({ type: "join" });
      const sync = await socket.expect({ type: "sync" });
      // The welcome message, if any, follows directly.
      socket.send({ type: "ping" });
      await socket.nextOf("pong");
      return Object.assign(socket, { sync });
    },
    async act(socket, actionType, payload) {
      const id = String(++requestId);
      socket.send({ type: "send", actionType, requestId: id, ...(payload === undefined ? {} : { payload }) });
      for (;;) {
        const answer = await socket.next();
        if (answer["requestId"] === id) return answer;
      }
    },
    async flush(socket) {
      socket.send({ type: "ping" });
      const messages: JsonObject[] = [];
      for (let message = await socket.next(); message["type"] !== "pong"; message = await socket.next()) {
        messages.push(message);
      }
      return messages;
    },
    async untilInMemory(count) {
      await until(`${count} rooms are in memory`, async () => {
        const text = await (await platform().service.fetch("/metrics")).text();
        return text.includes(`platform_rooms_in_memory ${count}\n`);
      });
    },
    async closeAll() {
      for (const socket of opened.splice(0)) await socket.close();
    },
  };
}
