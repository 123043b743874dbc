import { expect, test } from "bun:test";
import { Foreground, Pacing } from "./foreground.ts";

const LONG_MS = 3_600_000;

test("[JB18] [TG21] work in the background waits after a step only where a request was answered since", () => {
  const foreground = new Foreground();
  const pacing = new Pacing(foreground, LONG_MS);
  expect(pacing.leftMs).toBe(0);
  foreground.note();
  expect(pacing.leftMs).toBe(0);
  pacing.step();
  expect(pacing.leftMs).toBe(0);
  foreground.note();
  expect(pacing.leftMs).toBeWithin(1, LONG_MS + 1);
  pacing.step();
  expect(pacing.leftMs).toBe(0);
});

test("[JB18] what waits for the next step can be cancelled", async () => {
  const foreground = new Foreground();
  const pacing = new Pacing(foreground, 1);
  const ran: string[] = [];
  pacing.after(() => ran.push("cancelled"))();
  await new Promise<void>((resolve) => void pacing.after(resolve));
  expect(ran).toEqual([]);
});
