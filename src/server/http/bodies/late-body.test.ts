import { expect, test } from "bun:test";
import { connect } from "node:net";
import { until } from "../../../../tests/support/until.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { lateBody } from "./late-body.ts";

const serveLate = (bodyOf: () => string | Uint8Array<ArrayBuffer> | ReadableStream) =>
  Bun.serve({
    port: 0,
    async fetch() {
      await nextTurn();
      return new Response(bodyOf(), { headers: { "content-type": "application/json" } });
    },
  });

test("[HT91] a late body of each size and form arrives whole, and has its length", async () => {
  for (const unit of ["x", "é", "→", "🙂"]) {
    for (const count of [1, 5_000, 15_361, 100_000, 300_000, 1_200_000]) {
      const text = unit.repeat(count);
      for (const body of [() => lateBody(text), () => lateBody(new TextEncoder().encode(text))]) {
        const server = serveLate(body);
        const response = await fetch(server.url);
        expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
        expect((await response.text()) === text).toBe(true);
        await server.stop(true);
      }
    }
  }
});

test("[HT91] a client that reads slowly gets all of a late body, and one that leaves harms nobody", async () => {
  const text = "x".repeat(1_000_000);
  let answers = 0;
  const server = serveLate(() => {
    answers += 1;
    return lateBody(text);
  });
  const sockets = Array.from({ length: 40 }, () => {
    const socket = connect(Number(server.port), "127.0.0.1");
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return socket;
  });
  await until("all are being answered", () => answers === 40);
  const [slow, ...leaving] = sockets;
  if (slow === undefined) throw new Error("there is one");
  for (const socket of leaving) socket.destroy();
  await until("they are gone", () => server.pendingRequests <= 1);
  let received = 0;
  slow.on("data", (chunk) => {
    received += chunk.length;
  });
  slow.resume();
  await until("all has arrived", () => received > text.length);
  expect(await (await fetch(server.url)).text()).toBe(text);
  await server.stop(true);
});
