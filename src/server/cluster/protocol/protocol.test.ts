import { describe, expect, test } from "bun:test";
import { Appender } from "./appender.ts";
import { KnownServer } from "./channel.ts";
import { KeptEntries } from "./kept.ts";
import { APPEND_BYTES, KEPT_MAX_BYTES, KEPT_POSITIONS, QUEUE_MAX, QUEUE_MAX_BYTES } from "./limits.ts";
import { type LogEntry, outcomeOf, type StatementAnswer } from "./statements.ts";

const SETTINGS = { standbyNames: "ANY 1 (s)", loadedAt: "1" };
const START = { position: 0, nonce: "" };
const GROUP = { ...START, history: 0, isStopped: false, epoch: 1, owner: "a", incarnation: "a1", base: START };
const ANSWER: StatementAnswer = {
  isDone: true,
  group: GROUP,
  nodes: [],
  entries: [],
  hasNotice: false,
  before: SETTINGS,
  after: SETTINGS,
};

describe("[CLU4] a node believes", () => {
  const server = { system: "one", timeline: 2, isStandby: false };
  test.each([
    ["the server that it knows", server, true],
    ["one that was promoted in its place", { ...server, timeline: 3 }, true],
    ["no standby", { ...server, isStandby: true }, false],
    ["no other system", { ...server, system: "two", timeline: 3 }, false],
    ["no earlier timeline", { ...server, timeline: 1 }, false],
  ])("%s", (_, other, isAccepted) => {
    const known = new KnownServer(server);
    expect(known.accepts(other)).toBe(isAccepted);
    expect(known.timeline).toBe(isAccepted ? other.timeline : 2);
  });
});

describe("[CLU5] a success", () => {
  const none = { standbyNames: "", loadedAt: "1" };
  test.each([
    ["is durable with a standby", ANSWER, "standby", "durable"],
    ["is durable without one where none is asked for", { ...ANSWER, before: none, after: none }, "single", "durable"],
    ["is weak without one where one is asked for", { ...ANSWER, before: none, after: none }, "standby", "weak"],
    ["proves nothing with a notice", { ...ANSWER, hasNotice: true }, "standby", "unknown"],
    ["proves nothing when the names were taken away", { ...ANSWER, after: none }, "standby", "unknown"],
    ["or put back since", { ...ANSWER, after: { ...SETTINGS, loadedAt: "3" } }, "standby", "unknown"],
  ] as const)("%s", (_, answer, durability, outcome) => {
    expect(outcomeOf(answer, durability)).toBe(outcome);
  });
});

describe("[CLU6] bounds", () => {
  const entry = (position: number): LogEntry => ({
    position,
    epoch: 1,
    nonce: `n${position}`,
    previous: position === 1 ? "" : `n${position - 1}`,
    body: [],
  });

  test("the last positions are kept, and no more", () => {
    const kept = new KeptEntries();
    const end = 10 * KEPT_POSITIONS;
    for (let position = 1; position <= end; position++) kept.add(entry(position));
    const from = (position: number) => kept.after({ position, nonce: `n${position}` }, end);
    expect(from(end - KEPT_POSITIONS)).toHaveLength(KEPT_POSITIONS);
    expect(from(end - 2 * KEPT_POSITIONS - 1)).toBeNull();
    expect(kept.after({ position: end - 1, nonce: "another" }, end)).toBeNull();
    expect(kept.differs({ position: end, nonce: "another" })).toBe(true);
    expect(kept.differs({ position: end, nonce: `n${end}` })).toBe(false);
  });

  test("commits that wait for an append are bounded", () => {
    const owner = { node: "a", incarnation: "a1", epoch: 1, durability: "standby" as const };
    const row = { file: "system", number: 1, content: new Uint8Array(0) };
    const start = { position: 0, nonce: "" };
    const appender = new Appender({ ...owner, end: start, acknowledged: start }, [], new KeptEntries(), {
      send() {},
      nonce: () => "n",
      note() {},
      acknowledged() {},
      fenced() {},
      lost() {},
    });
    for (let count = 0; count < QUEUE_MAX; count++) expect(appender.commit(row)).toBe(true);
    expect(appender.commit(row)).toBe(false);
  });

  test("an append takes the commits that wait, up to some bytes, and large ones take several, in their order", () => {
    const sent: LogEntry[] = [];
    const start = { position: 0, nonce: "" };
    const appender = new Appender(
      { node: "a", incarnation: "a1", epoch: 1, durability: "standby", end: start, acknowledged: start },
      [],
      new KeptEntries(),
      {
        send: (statement) => statement.kind === "append" && sent.push(statement.entry),
        nonce: () => "n",
        note() {},
        acknowledged() {},
        fenced() {},
        lost() {},
      },
    );
    const commit = (number: number, bytes: number): number => {
      expect(appender.commit({ file: "f", number, content: new Uint8Array(bytes) })).toBe(true);
      return appender.tail;
    };
    const sizes = [1, 1, APPEND_BYTES - 2, 1, 1, 2 * APPEND_BYTES, 1];
    expect(sizes.map((bytes, index) => commit(index + 1, bytes))).toEqual([1, 1, 1, 2, 2, 3, 4]);
    appender.opened();
    while (sent.length < 4) appender.answered({ ...ANSWER, isDone: true });
    expect(sent.map(({ body }) => body.map(({ number }) => number))).toEqual([[1, 2, 3], [4, 5], [6], [7]]);
    // More bytes than the queue takes.
    const large = new Uint8Array(32 * 1024 * 1024);
    for (let bytes = 0; bytes + large.byteLength <= QUEUE_MAX_BYTES; bytes += large.byteLength)
      expect(appender.commit({ file: "f", number: 9, content: large })).toBe(true);
    expect(appender.commit({ file: "f", number: 9, content: large })).toBe(false);
  });

  test("large positions are kept in smaller numbers", () => {
    const kept = new KeptEntries();
    const body = [{ file: "f", number: 1, content: new Uint8Array(KEPT_MAX_BYTES / 8) }];
    for (let position = 1; position <= 20; position++) kept.add({ ...entry(position), body });
    expect(kept.after({ position: 12, nonce: "n12" }, 20)).toHaveLength(8);
    expect(kept.after({ position: 11, nonce: "n11" }, 20)).toBeNull();
  });
});
