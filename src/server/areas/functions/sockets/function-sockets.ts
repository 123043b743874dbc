import type { Clock } from "../../../../kernel/clock.ts";
import type { Principal } from "../../../access/principal.ts";
import type { Principals } from "../../../access/principals.ts";
import type { SessionEvents, UserEvents } from "../../../access/sessions.ts";
import type { Meter, MeterSocket } from "../../../sockets/clients.ts";
import { CLOSE } from "../../../sockets/limits.ts";
import { KeyWatch, SessionIndex } from "../../../sockets/session-index.ts";
import type { Socket, SocketHandler, SocketServer } from "../../../sockets/socket-server.ts";
import type { StandingRight, StandingRights } from "../../../sockets/standing-rights.ts";
import { METER_LIMITS, PUBLISHED_LOOK_MS } from "../limits.ts";
import { type Call, callOf } from "../requests/call.ts";
import { FunctionSocket, topicOf } from "./function-socket.ts";
import { receive } from "./messages.ts";

const OVER_RATE = JSON.stringify({ code: 429, message: "Too many messages; this one is dropped" });

/** The argument of Elysia's upgrade: the behaviour of one WebSocket. */
interface ElysiaSocketData {
  open?(socket: FunctionSocket): unknown;
  drain?(socket: FunctionSocket): unknown;
  close?(socket: FunctionSocket, code: number, reason: string): unknown;
}

/** The part of Bun's server that Elysia and handlers of routes receive. */
interface RoutesServer {
  upgrade(request: Request, options: { data: ElysiaSocketData; headers?: Record<string, string> }): boolean;
  /** Publishes to the sockets of routes that have subscribed to this topic. */
  publish(topic: string, message: string): void;
  requestIP(request: Request): { address: string } | null;
}

export interface FunctionSockets {
  readonly server: RoutesServer;
  stop(): void;
}

interface OpenSocket {
  readonly socket: Socket;
  readonly principal: Principal;
}

/** Creates the WebSockets of routes, on the server that all WebSockets share. */
export function createFunctionSockets(deps: {
  sockets: SocketServer;
  meter: MeterSocket;
  sessions: SessionEvents & UserEvents;
  rights: Pick<StandingRights, "begin" | "askSoon">;
  principals: Pick<Principals, "isPresent" | "requirePresent">;
  clock: Clock;
}): FunctionSockets {
  const { sockets, sessions } = deps;
  const index = new SessionIndex<OpenSocket>();
  const end = (ended: readonly OpenSocket[]): void => {
    for (const { socket } of ended) socket.close(CLOSE.sessionEnded, "The session has ended");
  };
  const unlisten = sessions.onEnd((sessionId) => end(index.ofSession(sessionId)));
  // The rule and the handlers of a socket know the previous user.
  const unlistenChanges = sessions.onUserChange((userId) =>
    end(index.ofUser(userId).filter(({ principal }) => isOther(deps, principal))),
  );
  const keyWatch = new KeyWatch({ ...deps, connections: index.ofKeys, end });
  const published = createPublished(deps);

  const handlerOf = (call: Call, data: ElysiaSocketData, meter: Meter): SocketHandler => {
    const { principal } = call;
    let right: StandingRight | null = null;
    let opened: { entry: OpenSocket; socket: FunctionSocket } | null = null;
    return {
      open(raw) {
        const entry = { socket: raw, principal };
        opened = { entry, socket: new FunctionSocket(raw, sockets, { data, onPublish: published.look }) };
        published.sockets.add(raw);
        index.add(entry, principal);
        if (index.ofKeys.has(entry)) keyWatch.begin();
        right = watchRight(deps.rights, call, raw);
        data.open?.(opened.socket);
      },
      message(raw, message) {
        if (opened === null) return;
        const { socket } = opened;
        // Not awaited: a handler may wait for a later message.
        const isTaken = meter.take(message.length, () => {
          if (call.socket !== null) void receive(socket, message, { options: call.socket, context: data });
        });
        if (isTaken) return;
        if (meter.takeDropped()) socket.send(OVER_RATE);
        else raw.close(CLOSE.flood, "Far too many messages");
      },
      drain() {
        if (opened !== null) data.drain?.(opened.socket);
      },
      close(raw, code, reason) {
        meter.end();
        right?.end();
        published.sockets.delete(raw);
        if (opened === null) return;
        index.delete(opened.entry, principal);
        data.close?.(opened.socket, code, reason);
      },
      tooSlow() {
        if (opened !== null) sockets.drop(opened.entry.socket);
      },
    };
  };

  return {
    server: {
      upgrade(request, { data, headers }) {
        const call = callOf(request);
        if (call === undefined) return false;
        // The session or key may have ended during a rule's await, before there was a socket to close.
        deps.principals.requirePresent(call.principal);
        const meter = deps.meter(call.address, METER_LIMITS);
        try {
          sockets.upgrade(call.request, handlerOf(call, data, meter), { ...headers, ...call.protocolHeaders });
        } catch (cause) {
          meter.end();
          throw cause;
        }
        call.isUpgraded = true;
        return true;
      },
      publish(topic, message) {
        published.look();
        sockets.publish(topicOf(topic), message);
      },
      requestIP(request) {
        const call = callOf(request);
        return call === undefined ? null : { address: call.address };
      },
    },
    stop() {
      unlisten();
      unlistenChanges();
      keyWatch.stop();
      published.stop();
    },
  };
}

/** Counts published messages, which wait for sockets that nothing else checks, towards the bound of unsent bytes. [SK16] */
function createPublished({ sockets: server, clock }: { sockets: SocketServer; clock: Clock }) {
  const sockets = new Set<Socket>();
  let cancelLook: (() => void) | null = null;
  return {
    sockets,
    /** Schedules a check after a publication. */
    look(): void {
      cancelLook ??= clock.after(PUBLISHED_LOOK_MS, () => {
        cancelLook = null;
        for (const socket of sockets) server.waitingBytes(socket);
      });
    },
    stop: () => cancelLook?.(),
  };
}

/** Whether the caller's session or key has ended, or the user has another role. */
function isOther({ principals }: { principals: Pick<Principals, "requirePresent"> }, principal: Principal): boolean {
  try {
    principals.requirePresent(principal);
    return false;
  } catch {
    return true;
  }
}

/** Closes the socket when its rule, which has looked at records, denies it. null: it has looked at none. */
function watchRight(
  rights: Pick<StandingRights, "begin" | "askSoon">,
  { ask }: Call,
  raw: Socket,
): StandingRight | null {
  if (ask === null) return null;
  const right = rights.begin();
  right.owner = {
    async ask(watch) {
      try {
        await ask(watch);
        return null;
      } catch {
        return () => raw.close(CLOSE.sessionEnded, "The right to use this has ended");
      }
    },
    touched() {},
  };
  // The records that its rule looked at may have changed since its evaluation.
  rights.askSoon(right);
  return right;
}
