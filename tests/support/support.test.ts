import { expect, test } from "bun:test";
import { openSocket, testClock } from "./index.ts";

test("the test clock runs what falls due in order of time, then of asking", () => {
  const clock = testClock(1_000);
  const ran: string[] = [];
  clock.after(20, () => ran.push(`late ${clock.now()}`));
  clock.after(10, () => {
    ran.push(`first ${clock.now()}`);
    clock.after(5, () => ran.push(`added ${clock.now()}`));
  });
  clock.after(10, () => ran.push(`second ${clock.now()}`));
  const cancel = clock.after(12, () => ran.push("cancelled"));
  cancel();
  clock.advance(19);
  expect(ran).toEqual(["first 1010", "second 1010", "added 1015"]);
  clock.advance(1);
  expect(ran.at(-1)).toBe("late 1020");
  expect(clock.waiting).toBe(0);
});

test("the test clock's asynchronous advance waits for what the work goes on to do", async () => {
  const clock = testClock();
  let ticks = 0;
  const tick = async () => {
    await Promise.resolve();
    ticks += 1;
    clock.after(10, tick);
  };
  clock.after(10, tick);
  await clock.advanceAsync(100);
  expect(ticks).toBe(10);
});

test("the test socket keeps messages in order, times out, and tells how it was closed", async () => {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, bunServer) => (bunServer.upgrade(request) ? undefined : new Response("no", { status: 400 })),
    websocket: {
      message(socket, text) {
        if (text === "end") socket.close(4001, "asked to");
        else socket.send(String(text));
      },
    },
  });
  try {
    const socket = await openSocket(`ws://127.0.0.1:${server.port}`);
    for (const type of ["a", "b", "c"]) socket.send({ type });
    await socket.expect({ type: "a" });
    expect(await socket.nextOf<{ type: string }>("c")).toEqual({ type: "c" });
    await expect(socket.next(20)).rejects.toThrow("no message within 20 ms");
    await socket.expectSilence(30);
    socket.send("end");
    expect(await socket.closed).toEqual({ code: 4001, reason: "asked to" });
    await expect(socket.next()).rejects.toThrow("4001");
  } finally {
    await server.stop(true);
  }
});

test("the test socket says when an upgrade is refused", async () => {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status: 404 }) });
  await expect(openSocket(`ws://127.0.0.1:${server.port}`)).rejects.toThrow("was not opened");
  await server.stop(true);
});
