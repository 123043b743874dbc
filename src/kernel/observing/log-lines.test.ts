import { expect, test } from "bun:test";
import { testClock } from "../../../tests/support/clock.ts";
import { heapBytes } from "../../../tests/support/heap.ts";
import { LOG_LINES_MAX, LOG_LINES_MAX_CHARACTERS } from "../limits.ts";
import { silentLogger } from "../logger.ts";
import { LogLines } from "./log-lines.ts";

test("[SY20] the last 10,000 lines are kept, fewer where they are long, and all are passed on", () => {
  const passed: string[] = [];
  const next = { ...silentLogger, info: (message: string) => void passed.push(message) };
  const lines = new LogLines({ clock: testClock(), next });
  for (let at = 0; at < LOG_LINES_MAX + 50; at++) lines.logger.info(`line ${at}`);
  expect(lines.kept()).toHaveLength(LOG_LINES_MAX);
  expect([lines.kept()[0]?.message, lines.kept().at(-1)?.message]).toEqual(["line 50", `line ${LOG_LINES_MAX + 49}`]);
  expect(passed).toHaveLength(LOG_LINES_MAX + 50);
  for (let at = 0; at < 3_000; at++) lines.logger.info("x".repeat(50_000), { text: "y".repeat(50_000) });
  const characters = lines.kept().reduce((sum, { message, facts }) => sum + message.length + (facts?.length ?? 0), 0);
  expect(characters).toBeLessThanOrEqual(LOG_LINES_MAX_CHARACTERS);
});

test("[SY20] lines that are not kept take no memory", () => {
  const lines = new LogLines({ clock: testClock(), next: silentLogger });
  const before = heapBytes();
  for (let at = 0; at < LOG_LINES_MAX; at++) lines.logger.error("failed", { at, text: "y".repeat(7_000) });
  expect(heapBytes() - before).toBeLessThan(3 * LOG_LINES_MAX_CHARACTERS);
  expect(lines.kept().length).toBeGreaterThan(1_000);
});

test("[SY20] lines that newer ones have replaced take no memory", () => {
  const lines = new LogLines({ clock: testClock(), next: silentLogger });
  const empty = heapBytes();
  const log = () => lines.logger.error("failed", { text: "y".repeat(7_000) });
  for (let at = 0; at < 1_000; at++) log();
  const [kept, full] = [lines.kept().length, heapBytes() - empty];
  for (let at = 0; at < 900; at++) log();
  expect(kept).toBe(1_000);
  expect(heapBytes() - empty).toBeLessThan(1.5 * full);
});

test("[SY21] facts are JSON without secrets, errors with their causes", () => {
  const lines = new LogLines({ clock: testClock(), next: silentLogger });
  const cause = new Error("the cause", { cause: new Error("its own cause") });
  lines.logger.error("failed", { cause, password: "hidden-1", nested: { apiKey: "hidden-2", port: 80 } });
  lines.logger.warn("without facts");
  const [first, second] = lines.kept();
  expect(JSON.parse(first?.facts ?? "")).toMatchObject({
    cause: { name: "Error", message: "the cause", cause: { message: "its own cause" } },
    password: "[hidden]",
    nested: { apiKey: "[hidden]", port: 80 },
  });
  expect(JSON.stringify(lines.kept())).not.toContain("hidden-");
  expect(second).toMatchObject({ level: "warn", facts: null, seq: 2 });
});

test("[SY21] facts that JSON cannot represent, or that cannot be read, do not fail the call that logs them", () => {
  const lines = new LogLines({ clock: testClock(), next: silentLogger });
  const round: Record<string, unknown> = { name: "round" };
  round["self"] = round;
  const broken = {
    get name() {
      throw new Error("not to be read");
    },
  };
  for (const cause of [10n, { id: 10n }, round, broken, () => {}, Symbol("x")]) lines.logger.error("failed", { cause });
  const facts = lines.kept().map((line) => JSON.parse(line.facts ?? "null"));
  expect(facts[0]).toEqual({ cause: "10" });
  expect(facts[1]).toEqual({ cause: { id: "10" } });
  expect(facts[2]).toMatchObject({ cause: { name: "round", self: { name: "round" } } });
  expect(facts[3]).toBe("what was thrown cannot be read");
  expect(facts).toHaveLength(6);
});
