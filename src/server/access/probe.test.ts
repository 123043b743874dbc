import { expect, test } from "bun:test";
import type { FileFacts } from "../config/types.ts";
import { createProbe, mayTakeMoreThan } from "./probe.ts";

const readings: [string, (file: FileFacts) => unknown][] = [
  ["a member", (file) => file.key],
  ["a missing member", (file) => Reflect.get(file, "nothing")],
  ["destructuring", ({ size }) => size],
  ["in", (file) => "uploadedBy" in file],
  ["for in", (file) => Array.from(Object.keys(file))],
  ["a copy", (file) => ({ ...file })],
  ["JSON", (file) => JSON.stringify(file)],
  ["text", (file) => String(file)],
  ["hasOwn", (file) => Object.hasOwn(file, "uploaded")],
  ["its prototype", (file) => Object.getPrototypeOf(file)],
  ["a comparison", (file) => Bun.deepEquals(file, { key: "", size: 0, contentType: "" })],
  ["an object that inherits from it", (file) => Object.create(file).contentType],
];

test("[ST48] a probe notices every way of reading it", () => {
  for (const [name, read] of readings) {
    const probe = createProbe<FileFacts>({ key: "", size: 0, contentType: "" });
    expect([name, probe.isSeen]).toEqual([name, false]);
    read(probe.standIn);
    expect([name, probe.isSeen]).toEqual([name, true]);
  }
});

test("[ST48] passing a probe on, keeping it and testing it for null is not reading it", () => {
  const probe = createProbe<FileFacts>({ key: "", size: 0, contentType: "" });
  const [, file] = [null, probe.standIn];
  expect([file === null, file === undefined, typeof file, Boolean(file)]).toEqual([false, false, "object", true]);
  expect(probe.isSeen).toBe(false);
});

test("[TB80] functions with more parameters than their length counts are recognised", () => {
  const rest = [
    (...args: unknown[]) => args[1],
    (auth: unknown, record: unknown = null) => [auth, record],
    (auth: unknown, ...others: unknown[]) => [auth, others],
    async (auth: unknown, record = {}) => [auth, record],
    function old() {
      // biome-ignore lint/complexity/noArguments: a rule may be written so
      return arguments[1];
    },
    ((auth: unknown, record: unknown) => [auth, record]).bind(null),
    { read: (auth: unknown, record = null) => [auth, record] }.read,
  ];
  for (const rule of rest)
    expect([String(rule), mayTakeMoreThan(rule as () => unknown, 1)]).toEqual([String(rule), true]);
  const plain = [
    () => true,
    (auth: unknown) => auth !== null,
    async (auth: unknown) => auth !== null,
    function named(auth: unknown) {
      return auth !== null;
    },
    ({ id }: { id: string }) => [["ownerId", "==", id]],
  ];
  for (const rule of plain)
    expect([String(rule), mayTakeMoreThan(rule as () => unknown, 1)]).toEqual([String(rule), false]);
});
