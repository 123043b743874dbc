import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import { silentLogger } from "../../../../kernel/logger.ts";
import { ANONYMOUS } from "../../../access/principal.ts";
import type { Socket, SocketHandler } from "../../../sockets/socket-server.ts";
import { StandingRights } from "../../../sockets/standing-rights.ts";
import { PUBLISHED_LOOK_MS } from "../limits.ts";
import { belongsTo, type Call } from "../requests/call.ts";
import type { FunctionSocket } from "./function-socket.ts";
import { createFunctionSockets } from "./function-sockets.ts";

test("[SK16] [FN14] what routes publish counts towards what may wait for all sockets", () => {
  const clock = testClock();
  const handlers: SocketHandler[] = [];
  let looked: Socket[] = [];
  const { server, stop } = createFunctionSockets({
    sockets: {
      upgrade(_request, handler) {
        handlers.push(handler);
        return new Response(null);
      },
      publish() {},
      publishElsewhere() {},
      waitingBytes: (socket) => looked.push(socket),
      drop() {},
    },
    meter: () => ({ take: () => true, takeDropped: () => true, end() {} }),
    sessions: { onEnd: () => () => {}, onUserChange: () => () => {} },
    rights: new StandingRights({ clock, logger: silentLogger }),
    principals: { isPresent: () => true, requirePresent() {} },
    clock,
  });
  const open = () => {
    const request = new Request("http://localhost/");
    // The members of a call that an upgrade reads.
    const call = { principal: ANONYMOUS, address: "127.0.0.1", request, protocolHeaders: {} } as unknown as Call;
    belongsTo(call, request);
    const own: FunctionSocket[] = [];
    server.upgrade(request, { data: { open: (socket) => own.push(socket) } });
    const raw = { publish: () => 1 } as unknown as Socket;
    const handler = handlers.at(-1);
    handler?.open?.(raw);
    return { raw, publish: () => own[0]?.publish("chat", "hello"), close: () => handler?.close?.(raw, 1000, "") };
  };
  const lookedLater = (): Socket[] => {
    looked = [];
    clock.advance(PUBLISHED_LOOK_MS);
    return looked;
  };
  const [one, other, gone] = [open(), open(), open()];
  gone.close();
  expect(lookedLater()).toEqual([]);
  for (let count = 0; count < 3; count++) server.publish("chat", "hello");
  expect(lookedLater()).toEqual([one.raw, other.raw]);
  one.publish();
  expect(lookedLater()).toEqual([one.raw, other.raw]);
  expect(lookedLater()).toEqual([]);
  server.publish("chat", "hello");
  stop();
  expect(clock.waiting).toBe(0);
});
