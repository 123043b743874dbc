import type { Principal } from "../../access/principal.ts";
import type { Principals } from "../../access/principals.ts";
import type { SessionEvents } from "../../access/sessions.ts";
import type { Clock } from "../../kernel/clock.ts";
import { CLOSE } from "../../sockets/close-codes.ts";
import { createKeyWatch } from "../../sockets/key-watch.ts";
import type { Meter, MeterSocket } from "../../sockets/meters.ts";
import type { Socket, SocketHandler, SocketServer } from "../../sockets/server/socket-server.ts";
import { SessionIndex } from "../../sockets/session-index.ts";
import { METER_LIMITS, PUBLISHED_LOOK_MS } from "../limits.ts";
import { type Call, callOf } from "../requests/call.ts";
import { FunctionSocket, topicOf } from "./function-socket.ts";
import { receive } from "./messages.ts";

const OVER_RATE = JSON.stringify({ code: 429, message: "Too many messages; this one is dropped" });

/** What Elysia hands to an upgrade: the behaviour of one WebSocket. */
interface ElysiaSocketData {
  open?(socket: FunctionSocket): unknown;
  drain?(socket: FunctionSocket): unknown;
  close?(socket: FunctionSocket, code: number, reason: string): unknown;
}

/** The part of Bun's server that Elysia and handlers of routes get. */
interface RoutesServer {
  upgrade(request: Request, options: { data: ElysiaSocketData; headers?: Record<string, string> }): boolean;
  /** To the sockets of routes that have subscribed to this topic. */
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

/** WebSockets of routes, on the server that all WebSockets share. */
export function createFunctionSockets(deps: {
  sockets: SocketServer;
  meter: MeterSocket;
  sessions: SessionEvents;
  principals: Pick<Principals, "isPresent" | "requirePresent">;
  clock: Clock;
}): FunctionSockets {
  const { sockets, sessions, clock } = deps;
  const index = new SessionIndex<OpenSocket>();
  const end = (ended: readonly OpenSocket[]): void => {
    for (const { socket } of ended) socket.close(CLOSE.sessionEnded, "The session has ended");
  };
  const unlisten = sessions.onEnd((sessionId) => end(index.ofSession(sessionId)));
  const keyWatch = createKeyWatch({ ...deps, connections: index.ofKeys, end });
  const openSockets = new Set<Socket>();
  let cancelLook: (() => void) | null = null;
  /** What is published waits for sockets that nothing else looks at: it counts towards what may wait for all. [SK16] */
  const onPublish = (): void => {
    cancelLook ??= clock.after(PUBLISHED_LOOK_MS, () => {
      cancelLook = null;
      for (const socket of openSockets) sockets.waitingBytes(socket);
    });
  };

  const handlerOf = (call: Call, data: ElysiaSocketData, meter: Meter): SocketHandler => {
    const { principal } = call;
    let opened: { entry: OpenSocket; socket: FunctionSocket } | null = null;
    return {
      open(raw) {
        const entry = { socket: raw, principal };
        opened = { entry, socket: new FunctionSocket(raw, sockets, { data, onPublish }) };
        openSockets.add(raw);
        index.add(entry, principal);
        if (index.ofKeys.has(entry)) keyWatch.begin();
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
        openSockets.delete(raw);
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
        // Its session or key may have ended while a rule was awaited, when no socket was there to be closed.
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
        onPublish();
        sockets.publish(topicOf(topic), message);
      },
      requestIP(request) {
        const call = callOf(request);
        return call === undefined ? null : { address: call.address };
      },
    },
    stop() {
      unlisten();
      keyWatch.stop();
      cancelLook?.();
    },
  };
}
