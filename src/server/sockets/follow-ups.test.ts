import { expect, test } from "bun:test";
import { nextTurn, Scheduler } from "../../kernel/time/scheduler.ts";
import { Connection, type SignedIn } from "./connection.ts";
import { FollowUps } from "./follow-ups.ts";
import type { Protocol, Steps } from "./protocol.ts";
import { SessionIndex } from "./session-index.ts";

const STEP_MS = 2;
const RIGHTS = 5;

/** Connections of one user with `RIGHTS` rights each, whose rules take `STEP_MS`. */
function world(connectionCount: number) {
  let now = 0;
  let role = "a";
  const asked: string[] = [];
  const closed: unknown[] = [];
  const auth = { id: "ann", role, email: null, emailVerified: false, isAnonymous: false };
  const index = new SessionIndex<Connection<number>>();
  const connections = Array.from({ length: connectionCount }, (_, state) => {
    const principal = { kind: "user", sessionId: "s", auth } as unknown as SignedIn; // the members that are read
    const closeAsSlow = (): void => void closed.push(state);
    const connection = { state, principal, isClosed: false, closeAsSlow } as unknown as Connection<number>;
    index.add(connection, principal);
    return connection;
  });
  function* steps({ state, principal }: Connection<number>): Steps {
    for (let right = 0; right < RIGHTS; right++) {
      now += STEP_MS;
      asked.push(`${state} as ${principal?.kind === "user" ? principal.auth.role : null}`);
      if (state < 0) throw new Error("failed");
      yield;
    }
  }
  const reviews = new FollowUps<number>({
    protocol: { userChanged: steps, refreshed: steps } as unknown as Protocol<number>,
    answers: { crashed() {} },
    index,
    sessions: { find: () => ({ ...auth, role, phone: null, invitation: null, tokenVersion: 1 }) },
    followUps: new Scheduler({ now: () => now }),
  });
  const become = (next: string): void => {
    role = next;
    reviews.userChanged("ann");
  };
  return { reviews, connections, asked, closed, become, steps };
}

const turn = async (): Promise<void> => {
  await nextTurn();
  await nextTurn();
};

test("[SK223] the rights of all connections of a user share the time of a turn, and each is the new user's at once", async () => {
  const { connections, asked, become } = world(4);
  become("b");
  expect(connections.map(({ principal }) => (principal?.kind === "user" ? principal.auth.role : null))).toEqual(
    Array(4).fill("b"),
  );
  let before = 0;
  while (asked.length < connections.length * RIGHTS) {
    await nextTurn();
    expect(asked.length - before).toBeLessThanOrEqual(2);
    before = asked.length;
  }
});

test("[SK223] an auth that refreshes waits for the changes before it, and not for those that follow", async () => {
  const { reviews, connections, asked, become } = world(2);
  const [first] = connections;
  if (first === undefined) throw new Error("there are two");
  become("b");
  const refreshed = reviews.refresh(first, { kind: "anonymous" });
  await turn();
  become("c");
  await refreshed;
  expect(asked.length).toBeLessThan(5 * RIGHTS);
  while (asked.length < 5 * RIGHTS) await turn();
  expect(asked.slice(-2 * RIGHTS)).toEqual([0, 1].flatMap((state) => Array(RIGHTS).fill(`${state} as c`)));
});

test("[SK223] a connection whose rights cannot be asked is closed, and the others are asked", async () => {
  const { connections, asked, closed, become } = world(2);
  Object.assign(connections[0] ?? {}, { state: -1 });
  become("b");
  while (asked.length < 1 + RIGHTS) await turn();
  expect(closed.length).toBe(1);
});

test("[SK224] what follows the end of many connections shares the same time, in the order of what happens", async () => {
  const { reviews, connections, asked, become, steps } = world(3);
  become("b");
  for (const connection of connections) reviews.closed(connection, steps(connection));
  let before = 0;
  while (asked.length < 2 * connections.length * RIGHTS) {
    await nextTurn();
    expect(asked.length - before).toBeLessThanOrEqual(2);
    before = asked.length;
  }
});

test("[SK224] connections that end in the same turn wait as one piece of work, and one that fails keeps no other from it", async () => {
  let runs = 0;
  const turns = new Scheduler();
  const crashed: unknown[] = [];
  const followUps = new FollowUps<number>({
    protocol: { errorText: () => "", refreshed: () => null, userChanged: () => null },
    answers: { crashed: ({ state }: Connection<number>) => void crashed.push(state) },
    index: new SessionIndex(),
    sessions: { find: () => null },
    followUps: {
      run(steps) {
        runs++;
        return turns.run(steps);
      },
    },
  });
  const ended: number[] = [];
  function* steps(state: number): Steps {
    yield;
    if (state === 1) throw new Error("failed");
    ended.push(state);
  }
  for (let state = 0; state < 3_000; state++) {
    followUps.closed({ state } as unknown as Connection<number>, steps(state)); // the part that is read
  }
  while (ended.length < 2_999) await nextTurn();
  expect([runs, crashed, ended.slice(0, 2)]).toEqual([1, [1], [0, 2]]);
});

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
  const followUps = new FollowUps<number>({
    protocol: { errorText: ({ code }) => code, refreshed: () => null, userChanged: () => null },
    answers: { crashed() {} },
    index: new SessionIndex(),
    sessions: { find: () => null },
    followUps: new Scheduler({ now: () => now }),
  });
  const [first] = connections;
  const identity = first?.identity;
  followUps.end(connections);
  followUps.end(connections);
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
