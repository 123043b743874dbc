import type { SessionEvents } from "../../access/sessions.ts";
import { CLOSE } from "../../sockets/close-codes.ts";
import type { Socket, SocketHandler, SocketServer } from "../../sockets/server/socket-server.ts";
import type { Call } from "../requests/call.ts";
import { FunctionSocket, topicOf } from "./function-socket.ts";

/** What Elysia hands to an upgrade: the behaviour of one WebSocket. */
interface ElysiaSocketData {
  open?(socket: FunctionSocket): unknown;
  message?(socket: FunctionSocket, message: string | Buffer): unknown;
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

/** WebSockets of routes, on the server that all WebSockets share. */
export function createFunctionSockets(deps: {
  sockets: SocketServer;
  sessions: SessionEvents;
  calls: WeakMap<Request, Call>;
}): FunctionSockets {
  const { sockets, calls } = deps;
  const bySession = new Map<string, Set<Socket>>();
  const unlisten = deps.sessions.onEnd((sessionId) => {
    for (const socket of bySession.get(sessionId) ?? []) socket.close(CLOSE.sessionEnded, "The session has ended");
  });

  const handlerOf = (call: Call, data: ElysiaSocketData): SocketHandler => {
    const sessionId = call.principal.kind === "user" ? call.principal.sessionId : null;
    let opened: { raw: Socket; socket: FunctionSocket } | null = null;
    return {
      open(raw) {
        opened = { raw, socket: new FunctionSocket(raw, sockets, data) };
        if (sessionId !== null) addTo(bySession, sessionId, raw);
        data.open?.(opened.socket);
      },
      message(_raw, message) {
        if (opened !== null) data.message?.(opened.socket, message);
      },
      drain() {
        if (opened !== null) data.drain?.(opened.socket);
      },
      close(raw, code, reason) {
        if (sessionId !== null) removeFrom(bySession, sessionId, raw);
        if (opened !== null) data.close?.(opened.socket, code, reason);
      },
      tooSlow() {
        if (opened !== null) sockets.drop(opened.raw);
      },
    };
  };

  return {
    server: {
      upgrade(request, { data, headers }) {
        const call = calls.get(request);
        if (call === undefined) return false;
        sockets.upgrade(call.request, handlerOf(call, data), { ...headers, ...call.protocolHeaders });
        call.isUpgraded = true;
        return true;
      },
      publish: (topic, message) => sockets.publish(topicOf(topic), message),
      requestIP(request) {
        const call = calls.get(request);
        return call === undefined ? null : { address: call.address };
      },
    },
    stop: unlisten,
  };
}

function addTo(sockets: Map<string, Set<Socket>>, sessionId: string, socket: Socket): void {
  const ofSession = sockets.get(sessionId) ?? new Set();
  sockets.set(sessionId, ofSession.add(socket));
}

function removeFrom(sockets: Map<string, Set<Socket>>, sessionId: string, socket: Socket): void {
  const ofSession = sockets.get(sessionId);
  ofSession?.delete(socket);
  if (ofSession?.size === 0) sockets.delete(sessionId);
}
