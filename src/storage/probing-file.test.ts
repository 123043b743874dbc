import { expect, test } from "bun:test";
import type { FileFacts } from "../config/types.ts";
import { createProbingFile } from "./probing-file.ts";

const looks: [string, (file: FileFacts) => unknown][] = [
  ["a member", (file) => file.key],
  ["a member that is not there", (file) => Reflect.get(file, "nothing")],
  ["destructuring", ({ size }) => size],
  ["in", (file) => "uploadedBy" in file],
  ["for in", (file) => Array.from(Object.keys(file))],
  ["a copy", (file) => ({ ...file })],
  ["JSON", (file) => JSON.stringify(file)],
  ["text", (file) => String(file)],
  ["hasOwn", (file) => Object.hasOwn(file, "uploaded")],
  ["its prototype", (file) => Object.getPrototypeOf(file)],
  ["a comparison", (file) => Bun.deepEquals(file, { key: "", size: 0, contentType: "" })],
  ["an object made of it", (file) => Object.create(file).contentType],
];

test("[ST48] whoever looks at a probing file is noticed, in whatever way", () => {
  for (const [name, look] of looks) {
    const probe = createProbingFile();
    expect([name, probe.isSeen]).toEqual([name, false]);
    look(probe.file);
    expect([name, probe.isSeen]).toEqual([name, true]);
  }
});

test("[ST48] handing it on, keeping it and asking whether it is there is not looking", () => {
  const probe = createProbingFile();
  const [, file] = [null, probe.file];
  expect([file === null, file === undefined, typeof file, Boolean(file)]).toEqual([false, false, "object", true]);
  expect(probe.isSeen).toBe(false);
});

test("[ST48] it has every member of a stored file", () => {
  const { file } = createProbingFile();
  expect(Object.keys(file).sort()).toEqual([
    ...["contentType", "customMetadata", "key", "size", "uploaded", "uploadedBy"],
  ]);
});
