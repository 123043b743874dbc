import { join } from "node:path";
import { Elysia } from "elysia";
import { roomsLayout } from "../../schema/migrations/index.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { unauthorized } from "../../src/kernel/errors.ts";
import { systemIds } from "../../src/kernel/ids.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import type { Logger } from "../../src/kernel/logger.ts";
import { ANONYMOUS } from "../../src/server/access/principal.ts";
import type { Principals } from "../../src/server/access/principals.ts";
import { RoomsArea } from "../../src/server/areas/rooms/index.ts";
import { createTableLookups } from "../../src/server/areas/tables/lookups/session.ts";
import type { AppAccess } from "../../src/server/config/app/index.ts";
import type { RoomsConfig } from "../../src/server/config/types.ts";
import { createStorageEngine, type DatabaseFile, layOut } from "../../src/server/db/index.ts";
import { createCors } from "../../src/server/http/cors.ts";
import { createHttp } from "../../src/server/http/http.ts";
import { mountEndpoints } from "../../src/server/http/mount.ts";
import { Sockets } from "../../src/server/sockets/index.ts";
import type { Socket, SocketHandler, SocketServer } from "../../src/server/sockets/socket-server.ts";
import { settle, type TestClock, testClock } from "./clock.ts";
import { temporaryDirectory } from "./platform.ts";

/** Client of a room, with the messages it received. */
export interface RoomClient {
  readonly userId: string;
  readonly messages: JsonObject[];
  /** Close event; null while open. */
  readonly closed: { code: number } | null;
  send(message: JsonObject | string): void;
  /** Sends auth and join, and waits for the outcome. */
  enter(): Promise<void>;
  /** Stops reading, so that messages to it queue up. */
  stall(): void;
  /** Closes the connection from the client's side: 1000 is a clean close, 1006 a lost connection. */
  close(code: number): Promise<void>;
  /** Returns messages of this type, oldest first. */
  of(type: string): JsonObject[];
}

/** Rooms area in this process, with a test clock, a real file and the real WebSocket endpoint. */
export interface RoomsWorld {
  readonly clock: TestClock;
  readonly area: RoomsArea;
  readonly failures: { message: string; facts: Record<string, unknown> }[];
  /** Lets promises and file writes finish. */
  settle(): Promise<void>;
  /** Advances the clock, letting writes finish on the way. */
  advance(ms: number): Promise<void>;
  connect(userId: string, options?: { namespace?: string; id?: string; sessionId?: string }): Promise<RoomClient>;
  get(path: string): Promise<Response>;
  endSession(sessionId: string): void;
  setRole(userId: string, role: string): void;
  /** While true, every write to the file fails. */
  failWrites(isFailing: boolean): void;
  /** Stops the area gracefully, and starts it again. */
  restart(): Promise<void>;
  /** Simulates a crash of the process. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

const WRITE_TURNS_MAX = 2_000;
/** Longest step of the clock between two checks of the file. */
const ADVANCE_STEP_MS = 15_000;

export async function roomsWorld(config: RoomsConfig): Promise<RoomsWorld> {
  const clock = testClock();
  const engine = createStorageEngine({ clock: systemClock });
  const opened = engine.open(join(temporaryDirectory(), "rooms.db"), { migrate: layOut(roomsLayout) });
  let writesUnderWay = 0;
  let isFailing = false;
  const file: Pick<DatabaseFile, "query" | "write"> = {
    query: (sql) => opened.query(sql),
    write(work) {
      if (isFailing) return Promise.reject(new Error("the disk is full"));
      writesUnderWay++;
      return opened.write(work).finally(() => writesUnderWay--);
    },
  };
  const settleWrites = async (): Promise<void> => {
    await settle();
    for (let turn = 0; writesUnderWay > 0 && turn < WRITE_TURNS_MAX; turn++) {
      await Bun.sleep(1);
      await settle();
    }
  };
  const ended = new Set<string>();
  const roles = new Map<string, string>();
  const listeners = new Set<(sessionId: string) => void>();
  const changeListeners = new Set<(userId: string) => void>();
  const sessions = {
    find: (sessionId: string, userId: string) =>
      ended.has(sessionId)
        ? null
        : {
            role: roles.get(userId) ?? "user",
            email: null,
            emailVerified: false,
            isAnonymous: false,
            phone: null,
            invitation: null,
            tokenVersion: 0,
          },
    onEnd(listener: (sessionId: string) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onUserChange(listener: (userId: string) => void) {
      changeListeners.add(listener);
      return () => changeListeners.delete(listener);
    },
  };
  // A token is USER or USER/SESSION; tokens that begin with "bad" are invalid.
  const principals: Principals = {
    showsKey: () => false,
    isKeyHolder: () => false,
    isPresent: () => false,
    requirePresent() {},
    ofTicket: () => null,
    requireUsable() {},
    ofHeaders: () => ANONYMOUS,
    ofToken(token) {
      const [id = "", sessionId = `session of ${id}`] = token.split("/");
      const session = token.startsWith("bad") ? null : sessions.find(sessionId, id);
      if (session === null) throw unauthorized("Invalid token");
      return { kind: "user", sessionId, auth: { id, ...session, custom: {} } };
    },
  };
  const failures: { message: string; facts: Record<string, unknown> }[] = [];
  const note = (message: string, facts: Record<string, unknown> = {}): void => {
    failures.push({ message, facts });
  };
  const logger: Logger = { info() {}, warn: note, error: note };
  const http = createHttp({
    principals,
    cors: createCors(),
    clock,
    logger,
    bodyMaxBytes: 1024,
    globalLimit() {},
    addressOf: () => "127.0.0.1",
    holdOpen() {},
  });

  let upgraded: SocketHandler | null = null;
  let generation = startGeneration();

  function startGeneration() {
    const own = mortalClock(clock);
    const server: SocketServer = {
      waitingBytes: (socket) => socket.getBufferedAmount(),
      drop: (socket) => socket.close(1013, "Too slow"),
      upgrade(_request, handler) {
        upgraded = handler;
        return new Response(null);
      },
      publish() {},
      publishElsewhere() {},
    };
    const sockets = new Sockets({ server, principals, sessions, logger, clock: own.clock, ids: systemIds });
    const area = new RoomsArea({
      config,
      sockets,
      sessions,
      file,
      logger,
      clock: own.clock,
      // No handler in these tests uses `app`.
      app: () => ({}) as AppAccess,
      audit: async () => {},
      lookups: createTableLookups({ namespaces: new Map(), logger }),
    });
    const served = new Elysia();
    mountEndpoints(served, http, area.endpoints);
    return { area, clock: own, server: served, clients: new Set<{ lose(): void }>() };
  }

  return {
    clock,
    failures,
    settle: settleWrites,
    async advance(ms) {
      for (let left = ms; left > 0; left -= ADVANCE_STEP_MS) {
        await clock.advanceAsync(Math.min(left, ADVANCE_STEP_MS));
        await settleWrites();
      }
    },
    get area() {
      return generation.area;
    },
    async connect(userId, { namespace = "game", id = "one", sessionId } = {}) {
      const { server, clients } = generation;
      const url = `http://localhost/api/room?namespace=${namespace}&id=${encodeURIComponent(id)}`;
      upgraded = null;
      const response = await server.fetch(new Request(url));
      if (upgraded === null) throw new Error(`refused: ${response.status} ${await response.text()}`);
      const token = sessionId === undefined ? userId : `${userId}/${sessionId}`;
      return openClient(upgraded, { userId, token, clients, settle: settleWrites });
    },
    get: async (path) => generation.server.fetch(new Request(`http://localhost${path}`)),
    endSession(sessionId) {
      ended.add(sessionId);
      for (const listener of [...listeners]) listener(sessionId);
    },
    setRole(userId, role) {
      roles.set(userId, role);
      for (const listener of [...changeListeners]) listener(userId);
    },
    failWrites(failing) {
      isFailing = failing;
    },
    async restart() {
      await generation.area.stop();
      generation.clock.die();
      generation = startGeneration();
      await settleWrites();
    },
    async crash() {
      generation.clock.die();
      for (const client of [...generation.clients]) client.lose();
      listeners.clear();
      changeListeners.clear();
      await settleWrites();
      generation = startGeneration();
      await settleWrites();
    },
    async stop() {
      await generation.area.stop();
      await engine.stop();
    },
  };
}

/** Creates a clock whose waiting work can be cancelled for good. */
function mortalClock(clock: Clock): { clock: Clock; die(): void } {
  let isAlive = true;
  return {
    clock: {
      now: () => clock.now(),
      after: (delayMs, work) => clock.after(delayMs, () => (isAlive ? work() : undefined)),
    },
    die() {
      isAlive = false;
    },
  };
}

function openClient(
  handler: SocketHandler,
  options: { userId: string; token: string; clients: Set<{ lose(): void }>; settle(): Promise<void> },
): RoomClient {
  const messages: JsonObject[] = [];
  let closed: { code: number } | null = null;
  let isLost = false;
  let isStalled = false;
  let waitingBytes = 0;
  const end = (code: number): void => {
    if (closed !== null) return;
    closed = { code };
    options.clients.delete(self);
    if (!isLost) handler.close?.(socket, code, "");
  };
  // The members of a socket that rooms use.
  const socket = {
    send(text: string) {
      if (isStalled) {
        waitingBytes += text.length;
        return -1;
      }
      if (closed === null) messages.push(JSON.parse(text));
      return text.length;
    },
    close: (code: number) => queueMicrotask(() => end(code)),
    getBufferedAmount: () => waitingBytes,
  } as unknown as Socket;
  const self = {
    lose() {
      isLost = true;
      end(1006);
    },
  };
  options.clients.add(self);
  handler.open?.(socket);

  const client: RoomClient = {
    userId: options.userId,
    messages,
    get closed() {
      return closed;
    },
    send(message) {
      if (closed === null) handler.message(socket, typeof message === "string" ? message : JSON.stringify(message));
    },
    async enter() {
      client.send({ type: "auth", token: options.token });
      client.send({ type: "join" });
      await options.settle();
    },
    stall() {
      isStalled = true;
    },
    async close(code) {
      end(code);
      await options.settle();
    },
    of: (type) => messages.filter((message) => message["type"] === type),
  };
  return client;
}
