import { expect, test } from "bun:test";
import { AsyncLocalStorage } from "node:async_hooks";
import { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import { MAILBOX_MAX, MAILBOX_MAX_CHARS, MAILBOXES_MAX_CHARS } from "../limits.ts";
import { Mailbox } from "./mailbox.ts";
import { RoomMeter } from "./room-meter.ts";

function unexpected(cause: unknown): void {
  throw cause;
}

const createMailbox = (onFailure: (cause: unknown) => void = unexpected): Mailbox =>
  new Mailbox(new RoomMeter(new TurnBudget()), { chars: 0 }, onFailure);

test("[RM20] a task that fails is reported, and the next one runs", async () => {
  const causes: unknown[] = [];
  const mailbox = createMailbox((cause) => causes.push(cause));
  let ran = 0;
  mailbox.post(() => {
    throw new Error("at once");
  });
  mailbox.post(() => Promise.reject(new Error("later")));
  mailbox.post(() => void ran++);
  await mailbox.whenIdle();
  expect(ran).toBe(1);
  expect(causes.map(String)).toEqual(["Error: at once", "Error: later"]);
});

test("[RM20] a task runs at once when none is running; others run in order of arrival, one at a time", async () => {
  const mailbox = createMailbox();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  mailbox.post(() => {
    order.push("first");
    return gate.promise.then(() => void order.push("first is done"));
  });
  for (let index = 0; index < 250; index++) mailbox.post(() => void order.push(String(index)));
  expect(order).toEqual(["first"]);
  gate.resolve();
  await mailbox.whenIdle();
  expect(order).toEqual(["first", "first is done", ...Array.from({ length: 250 }, (_, index) => String(index))]);
});

test("[RM20] a full mailbox refuses tasks and does not run them", async () => {
  const mailbox = createMailbox();
  const gate = Promise.withResolvers<void>();
  let count = 0;
  mailbox.post(() => gate.promise);
  for (let index = 0; index < MAILBOX_MAX; index++) expect(mailbox.post(() => void count++)).toBe(true);
  expect(mailbox.post(() => void count++)).toBe(false);
  gate.resolve();
  await mailbox.whenIdle();
  expect(count).toBe(MAILBOX_MAX);
});

test("[RM101] messages that wait are bounded by their length, in one room and in all", async () => {
  const all = { chars: 0 };
  const gate = Promise.withResolvers<void>();
  const rooms = Array.from({ length: 5 }, () => new Mailbox(new RoomMeter(new TurnBudget()), all, unexpected));
  const [room, ...others] = rooms;
  for (const one of rooms) one.post(() => gate.promise);
  expect(room?.post(() => {}, MAILBOX_MAX_CHARS)).toBe(true);
  expect(room?.post(() => {}, 1)).toBe(false);
  expect(others.map((other) => other.post(() => {}, MAILBOX_MAX_CHARS))).toEqual([true, true, true, false]);
  expect(all.chars).toBe(MAILBOXES_MAX_CHARS);
  room?.clear();
  expect(all.chars).toBe(MAILBOXES_MAX_CHARS - MAILBOX_MAX_CHARS);
  gate.resolve();
  await Promise.all(rooms.map((one) => one.whenIdle()));
  expect(all.chars).toBe(0);
});

test("[RM20] each task runs in the asynchronous context of its poster, not in that of the task before it", async () => {
  const mailbox = createMailbox();
  const context = new AsyncLocalStorage<string>();
  const gate = Promise.withResolvers<void>();
  const seen: (string | undefined)[] = [];
  const note = (): void => void seen.push(context.getStore());
  context.run("ann", () => mailbox.post(() => gate.promise.then(note)));
  context.run("bob", () => mailbox.post(note));
  mailbox.post(note);
  gate.resolve();
  await mailbox.whenIdle();
  expect(seen).toEqual(["ann", "bob", undefined]);
});
