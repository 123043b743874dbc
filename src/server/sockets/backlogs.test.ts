import { expect, test } from "bun:test";
import { Backlogs } from "./backlogs.ts";

const MIB = 1024 * 1024;

/** A socket whose handler drops it when it is too slow. */
function fakeSocket(backlogs: Backlogs, waitingBytes: number) {
  const socket = {
    waitingBytes,
    ending: "open",
    data: { tooSlow: () => backlogs.drop(socket) },
    getBufferedAmount: () => socket.waitingBytes,
    close(code?: number) {
      socket.ending = String(code);
    },
    terminate() {
      socket.ending = "cut off";
      socket.waitingBytes = 0;
    },
  };
  return socket;
}

test("[SK16] what waits for all sockets together is bounded: those with the most are closed", () => {
  const backlogs = new Backlogs(() => {});
  const small = Array.from({ length: 60 }, () => fakeSocket(backlogs, MIB));
  const large = Array.from({ length: 30 }, () => fakeSocket(backlogs, 5 * MIB));
  for (const socket of [...small, ...large]) backlogs.look(socket);
  expect([...small, ...large].filter(({ ending }) => ending === "cut off")).not.toEqual([]);
  expect(small.every(({ ending }) => ending === "open")).toBe(true);
  const left = [...small, ...large].reduce((sum, socket) => sum + socket.waitingBytes, 0);
  expect(left).toBeLessThanOrEqual(192 * MIB);
});

test("[SK16] sockets that have drained or closed no longer count", () => {
  const backlogs = new Backlogs(() => {});
  for (let turn = 0; turn < 100; turn++) {
    const [drained, closed] = [fakeSocket(backlogs, 10 * MIB), fakeSocket(backlogs, 10 * MIB)];
    for (const socket of [drained, closed]) expect(backlogs.look(socket)).toBe(10 * MIB);
    drained.waitingBytes = 0;
    backlogs.forget(closed);
    expect([drained.ending, closed.ending]).toEqual(["open", "open"]);
  }
});

test("[SK16] a slow socket is closed with 1013 after what waits, until too much is kept for closed sockets", () => {
  const backlogs = new Backlogs(() => {});
  const sockets = Array.from({ length: 20 }, () => fakeSocket(backlogs, 6 * MIB));
  for (const socket of sockets) backlogs.drop(socket);
  expect(sockets.map(({ ending }) => ending)).toEqual([...Array(10).fill("1013"), ...Array(10).fill("cut off")]);
});
