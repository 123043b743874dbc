import { expect, test } from "bun:test";
import { awaiting, countRows, currentTrace, inPhase, RequestTrace, traced } from "./request-trace.ts";

const requester = { requestId: "r1", address: () => "127.0.0.1" };

test("[AN110] of phases that are under way together the inner one counts, and the rest is the answer", () => {
  const trace = new RequestTrace(requester, 1_000);
  trace.enter("database", 1_010);
  trace.enter("rules", 1_030);
  expect(trace.times(1_035)).toEqual({ rules: 5, database: 20, hooks: 0, answer: 10 });
  trace.enter("hooks", 1_040);
  trace.leave("rules", 1_100);
  trace.leave("hooks", 1_200);
  trace.leave("database", 1_300);
  expect(trace.times(1_400)).toEqual({ rules: 10, database: 120, hooks: 160, answer: 110 });
});

test("[AN110] a phase ends with its promise or its error, across promises, in its request alone", async () => {
  const trace = new RequestTrace(requester, 0);
  const other = new RequestTrace(requester, 0);
  const { promise, resolve } = Promise.withResolvers<number>();
  const seen: [phase: string, by: "enter" | "leave"][] = [];
  const enter = trace.enter.bind(trace);
  const leave = trace.leave.bind(trace);
  Object.assign(trace, {
    enter(phase: "rules") {
      seen.push([phase, "enter"]);
      enter(phase);
    },
    leave(phase: "rules") {
      seen.push([phase, "leave"]);
      leave(phase);
    },
  });
  const work = traced(trace, async () => {
    await Promise.resolve();
    expect(inPhase("rules", () => currentTrace())).toBe(trace);
    expect(() =>
      inPhase("hooks", () => {
        throw new Error("denied");
      }),
    ).toThrow("denied");
    const given = inPhase("database", () => promise);
    expect(given).toBe(promise);
    await awaiting("rules", given);
    countRows(3);
  });
  await traced(other, async () => inPhase("rules", async () => countRows(1)));
  resolve(1);
  await work;
  expect(seen).toEqual([
    ["rules", "enter"],
    ["rules", "leave"],
    ["hooks", "enter"],
    ["hooks", "leave"],
    ["database", "enter"],
    ["rules", "enter"],
    ["database", "leave"],
    ["rules", "leave"],
  ]);
  expect([trace.rows, other.rows]).toEqual([3, 1]);
  expect(currentTrace()).toBeUndefined();
  expect(inPhase("rules", () => 7)).toBe(7);
});
