import { expect, test } from "bun:test";
import { nextTurn } from "../../kernel/time/next-turn.ts";
import { createTurns } from "../../kernel/time/turns.ts";
import { Connection } from "./connection.ts";
import { createEndings } from "./endings.ts";

const STEP_MS = 2;
const LIMITS = {
  authTimeoutMs: 1,
  messagesPerSecond: 1,
  messageMaxBytes: 1,
  charsPerSecond: 1,
  charsAtOnce: 1,
  backlogMaxBytes: 1,
};

test("[SK225] connections whose session ends are silent at once, and closed in turns", async () => {
  let now = 0;
  const heard: number[] = [];
  const sent: string[] = [];
  const closed: number[] = [];
  const connections = Array.from({ length: 5 }, (_, state) => {
    const connection = new Connection<number>({
      id: String(state),
      address: "127.0.0.1",
      client: "c",
      state,
      limits: LIMITS,
      now: 0,
      releasePlace() {},
      events: {
        opened() {},
        received: () => void heard.push(state),
        closed() {
          now += STEP_MS;
          closed.push(state);
        },
      },
      sockets: { waitingBytes: () => 0, drop() {} },
    });
    const socket = { send: (text: string) => sent.push(`${state}: ${text}`), close() {} };
    connection.open(socket as never); // the members that are called
    return connection;
  });
  const end = createEndings<number, never>({
    protocol: { errorText: ({ code }) => code },
    answers: { crashed() {} },
    followUps: createTurns(() => now),
  });
  const [first] = connections;
  const identity = first?.identity;
  end(connections);
  end(connections);
  for (const connection of connections) {
    connection.sendText("late");
    connection.message(connection.socket, "late");
  }
  expect([first?.isClosed, first?.closeCode, first?.identity]).toEqual([true, 4003, (identity ?? 0) + 1]);
  let before = 0;
  while (closed.length < connections.length) {
    await nextTurn();
    expect(closed.length - before).toBeLessThanOrEqual(2);
    before = closed.length;
  }
  expect([heard, closed, sent]).toEqual([[], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4].map((n) => `${n}: SESSION_REVOKED`)]);
});
