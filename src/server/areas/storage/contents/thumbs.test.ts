import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { slowPng } from "../../../../../tests/http/storage/pictures.ts";
import { systemClock } from "../../../../kernel/clock.ts";
import { systemIds } from "../../../../kernel/ids.ts";
import type { Bucket, StoredObject } from "../model/types.ts";
import { Thumbs } from "./thumbs.ts";

const directory = mkdtempSync(join(tmpdir(), "thumbs-"));
const thumbs = new Thumbs({ directory, config: {}, ids: systemIds, clock: systemClock, decodeMs: 200 });
afterAll(async () => {
  await thumbs.stop();
  rmSync(directory, { recursive: true });
});

test("[ST330] a picture whose processor time is over is refused, then at once, in every size", async () => {
  const source = join(directory, "source");
  await Bun.write(source, await slowPng());
  const bucket = { config: { thumbs: ["40x40", "200x100"] }, files: { localPath: () => source } } as unknown as Bucket; // All that it reads.
  const object = { fileId: "0123456789abcdef", size: Bun.file(source).size } as StoredObject; // All that it reads.
  const content = (size: string) =>
    thumbs.content(bucket, object, size, { callerName: "anonymous", signal: undefined });
  expect(content("40x40")).rejects.toMatchObject({ status: 413 });
  await content("40x40").catch(() => {});
  // One after the other they would take minutes.
  const again = await Promise.allSettled(Array.from({ length: 1_000 }, () => content("200x100")));
  expect(new Set(again.map((one) => one.status === "rejected" && one.reason.message))).toEqual(
    new Set(["This picture takes more than 0.2 s to scale down"]),
  );
  expect(readdirSync(directory).filter((name) => name !== "source" && name !== "ef")).toEqual([]);
});
