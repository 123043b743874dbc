import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { settle, temporaryDirectory } from "../../../../../tests/support/index.ts";
import { createLocalFiles } from "./local-files.ts";

const FIRST = "00000000-0000-7000-8000-0000000000ab";
const SECOND = "00000000-0000-7000-8000-0000000001ab";

/** Opens two files in one folder, with syncs that end when the test ends them. */
async function twoFiles() {
  const root = temporaryDirectory();
  const synced: string[] = [];
  const waiting: { path: string; end: (problem?: Error) => void }[] = [];
  const files = createLocalFiles(join(root, "storage/objects"), (path) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = (problem?: Error): void => {
      if (problem === undefined) synced.push(path.slice(root.length));
      if (problem === undefined) resolve();
      else reject(problem);
    };
    waiting.push({ path, end });
    return promise;
  });
  const finish = async (fileId: string) => {
    const incoming = await files.create(fileId);
    await incoming.write(new TextEncoder().encode(fileId));
    await incoming.finish();
  };
  /** Ends every sync that begins until `work` is done. */
  const endUntil = async (work: Promise<unknown>) => {
    let isDone = false;
    void work.finally(() => {
      isDone = true;
    });
    while (!isDone) {
      for (const { end } of waiting.splice(0)) end();
      await Bun.sleep(1);
    }
  };
  const begun = async () => {
    while (waiting.length === 0) await Bun.sleep(1);
  };
  /** Resolves when all bytes of the file have been written. */
  const written = async (fileId: string) => {
    const path = join(root, "storage/objects/incoming", fileId);
    while ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < fileId.length) await Bun.sleep(1);
    await settle();
  };
  return { root, synced, waiting, finish, endUntil, begun, written };
}

test("[ST109] every file in a new folder waits until the names of the folders above it are durable", async () => {
  const { root, synced, waiting, finish, endUntil, begun, written } = await twoFiles();
  const done: string[] = [];
  const first = finish(FIRST).then(() => done.push("first"));
  await begun();
  const second = finish(SECOND).then(() => done.push("second"));
  await written(SECOND);
  // The first sync is under way: the second file must not pass it.
  expect([done, waiting.length, waiting[0]?.path]).toEqual([[], 1, join(root, "storage")]);
  await endUntil(Promise.all([first, second]));
  expect(synced.slice(0, 3)).toEqual(["/storage", "", "/storage/objects"]);
  expect(synced.slice(3).every((path) => path === "/storage/objects/ab")).toBe(true);
});

test("[ST109] when the sync of a folder's name fails, the next file tries it again", async () => {
  const { synced, waiting, finish, endUntil, begun } = await twoFiles();
  const first = finish(FIRST).catch((problem: unknown) => problem);
  await begun();
  waiting.shift()?.end(new Error("the disk failed"));
  expect(await first).toMatchObject({ message: "the disk failed" });
  await endUntil(finish(SECOND));
  expect(synced).toEqual(["/storage", "", "/storage/objects", "/storage/objects/ab"]);
});

test("[ST109] once the names of its folders are durable, a file waits for the sync of its own name only", async () => {
  const { synced, finish, endUntil } = await twoFiles();
  await endUntil(finish(FIRST));
  const before = synced.length;
  await endUntil(finish(SECOND));
  expect(synced.slice(before)).toEqual(["/storage/objects/ab"]);
});
