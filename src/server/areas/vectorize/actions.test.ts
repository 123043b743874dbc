import { expect, test } from "bun:test";
import { countTurns } from "../../../../tests/support/event-loop.ts";
import { type Action, storedVectors } from "./actions.ts";

const index = { name: "near", dimensions: 2, metric: "cosine" } as const;

function upsert(count: number, metadata: { list: number[] }): Extract<Action, { action: "upsert" }> {
  const vectors = Array.from({ length: count }, (_, n) => ({ id: `v${n}`, values: [1, n], metadata }));
  return { action: "upsert", vectors };
}

test("[VZ107] vectors with much metadata are converted over several turns of the event loop", async () => {
  const counted = countTurns();
  const began = counted.turn;
  const metadata = { list: Array.from({ length: 15_000 }, (_, n) => n % 100) };
  const stored = await storedVectors(index, upsert(100, metadata));
  counted.stop();
  expect(stored).toHaveLength(100);
  expect(JSON.parse(stored[99]?.metadata ?? "")).toEqual(metadata);
  expect(counted.turn - began).toBeGreaterThan(20);
});
