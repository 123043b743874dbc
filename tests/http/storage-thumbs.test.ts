import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../support/index.ts";
import { png } from "./pictures.ts";
import { bytesOnDisk, path, until, upload } from "./storage-support.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ storage: { buckets: {
      pictures: { thumbs: ["40x40", "200x100"], access: { read: true } },
      hidden: { thumbs: ["40x40"] },
    } } }`,
  });
});
afterAll(() => platform.stop());

const thumb = (bucket: string, key: string, size: string, init?: RequestInit) =>
  platform.fetch(`${path(bucket, key)}?thumb=${size}`, init);

test("[ST70] a picture made to fit, never enlarged, made once", async () => {
  await upload(platform.service, "pictures", "wide", png(400, 100), { type: "image/png" });
  const answers = await Promise.all(Array.from({ length: 8 }, () => thumb("pictures", "wide", "40x40")));
  for (const answer of answers) {
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/webp"]);
    expect(await new Bun.Image(await answer.bytes()).metadata()).toMatchObject({
      width: 40,
      height: 10,
      format: "webp",
    });
  }
  expect(bytesOnDisk(platform, "thumbs")).toEqual(["40x40"]);
  await upload(platform.service, "pictures", "tiny", png(10, 5));
  const tiny = await thumb("pictures", "tiny", "200x100");
  expect(await new Bun.Image(await tiny.bytes()).metadata()).toMatchObject({ width: 10, height: 5 });
  const etag = tiny.headers.get("etag") ?? "";
  expect((await thumb("pictures", "tiny", "200x100", { headers: { "if-none-match": etag } })).status).toBe(304);
  expect((await thumb("pictures", "tiny", "40x40", { headers: { "if-none-match": etag } })).status).toBe(200);
});

test("[ST70] a picture that is replaced or deleted before its turn to be decoded is answered as it is then", async () => {
  const large = png(5_500, 5_500);
  for (let n = 0; n < 40; n++) await upload(platform.service, "pictures", `large ${n}`, large);
  for (const key of ["replaced", "deleted"]) await upload(platform.service, "pictures", key, png(100, 100));
  const before = Array.from({ length: 40 }, (_, n) => thumb("pictures", `large ${n}`, "40x40"));
  // One picture is decoded at a time: these wait for those above, for longer than the bytes of a replaced file stay.
  const [replaced, deleted] = ["replaced", "deleted"].map((key) => thumb("pictures", key, "40x40"));
  await before[0];
  await upload(platform.service, "pictures", "replaced", png(20, 10));
  await platform.service.delete(path("pictures", "deleted"));
  expect([(await deleted)?.status, (await replaced)?.status]).toEqual([404, 200]);
  const bytes = (await (await replaced)?.bytes()) ?? new Uint8Array();
  expect(await new Bun.Image(bytes).metadata()).toMatchObject({ width: 20, height: 10 });
  for (const answer of before) expect((await answer).status).toBe(200);
});

test("[ST70] undeclared sizes, files that are not pictures, and decompression bombs are refused", async () => {
  await upload(platform.service, "pictures", "text", "no picture", { type: "image/png" });
  await upload(platform.service, "pictures", "cut", png(50, 50).slice(0, 60), { type: "image/png" });
  await upload(platform.service, "pictures", "bomb", png(10, 10, { width: 60_000, height: 60_000 }));
  await upload(platform.service, "pictures", "picture", png(10, 10));
  for (const size of ["41x41", "40", "", "40x40x40", "../40x40"])
    expect((await thumb("pictures", "picture", size)).status).toBe(400);
  expect((await thumb("pictures", "text", "40x40")).status).toBe(415);
  expect((await thumb("pictures", "cut", "40x40")).status).toBe(415);
  expect((await thumb("pictures", "bomb", "40x40")).status).toBe(413);
  expect((await thumb("pictures", "missing", "40x40")).status).toBe(404);
  expect((await thumb("pictures", "picture", "40x40")).status).toBe(200);
});

test("[ST105] a thumbnail that was cut short is made again", async () => {
  await upload(platform.service, "hidden", "cut", png(100, 100));
  const whole = await (await platform.service.fetch(`${path("hidden", "cut")}?thumb=40x40`)).bytes();
  const [folder = ""] = readdirSync(join(platform.dataDirectory, "storage/thumbs"), {
    recursive: true,
    encoding: "utf8",
  })
    .filter((name) => name.endsWith("40x40"))
    .filter((name) => readFileSync(join(platform.dataDirectory, "storage/thumbs", name)).equals(whole));
  const file = join(platform.dataDirectory, "storage/thumbs", folder);
  for (const length of [0, 5, 20, whole.byteLength - 1]) {
    truncateSync(file, length);
    const again = await platform.service.fetch(`${path("hidden", "cut")}?thumb=40x40`);
    expect([length, again.status, (await again.bytes()).byteLength]).toEqual([length, 200, whole.byteLength]);
  }
  expect((await platform.service.delete(path("hidden", "cut"))).status).toBe(200);
});

test("[ST106] a picture of more megapixels than the config allows is refused before it is decoded", async () => {
  await platform.restart({
    config: `{ storage: { thumbs: { maxMegapixels: 1 }, buckets: {
      pictures: { thumbs: ["40x40", "200x100"], access: { read: true } },
      hidden: { thumbs: ["40x40"] },
    } } }`,
  });
  // Its pixels cannot be decoded: that the answer is 413 shows that nobody has tried.
  await upload(platform.service, "pictures", "large", png(10, 10, { width: 1025, height: 1024 }));
  await upload(platform.service, "pictures", "fits", png(1024, 1024));
  expect((await thumb("pictures", "large", "40x40")).status).toBe(413);
  expect((await thumb("pictures", "fits", "40x40")).status).toBe(200);
});

test("[ST71] a thumbnail is for callers that may read the picture, and is removed with it", async () => {
  await upload(platform.service, "hidden", "p", png(100, 100));
  expect((await thumb("hidden", "p", "40x40")).status).toBe(401);
  const before = bytesOnDisk(platform, "thumbs").length;
  const made = await platform.service.fetch(`${path("hidden", "p")}?thumb=40x40`);
  expect([made.status, made.headers.get("cache-control")]).toEqual([200, "private, no-cache"]);
  expect(bytesOnDisk(platform, "thumbs").length).toBe(before + 1);
  expect((await thumb("hidden", "p", "40x40")).status).toBe(401);
  await platform.service.delete(path("hidden", "p"));
  await until("the thumbnail is gone", () => bytesOnDisk(platform, "thumbs").length === before);
});

test("[ST80] thumbnails of files that are gone are removed at the next start, whatever a file manager has left there", async () => {
  await platform.kill("SIGTERM");
  const thumbs = join(platform.dataDirectory, "storage/thumbs");
  const orphan = join(thumbs, "ab", "01a20964-6fb3-72fc-8ff7-c9c1984061ab");
  mkdirSync(orphan, { recursive: true });
  writeFileSync(join(orphan, "40x40"), "what a crash left");
  for (const folder of [thumbs, join(thumbs, "ab")]) writeFileSync(join(folder, ".DS_Store"), "");
  await platform.restart();
  await until("it is gone", () => !existsSync(orphan));
  expect(platform.stderr()).not.toContain("sweeping files failed");
});
