import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import {
  animatedWebp,
  exifOf,
  type Pixels,
  png,
  pngColumn,
  pngOfPixels,
  progressiveJpeg,
  slowPng,
  turned,
  webpWithExif,
} from "./pictures.ts";
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
  for (let n = 0; n < 60; n++) await upload(platform.service, "pictures", `large ${n}`, large);
  for (const key of ["replaced", "deleted"]) await upload(platform.service, "pictures", key, png(100, 100));
  const before = Array.from({ length: 60 }, (_, n) => thumb("pictures", `large ${n}`, "40x40"));
  // One picture of a caller is decoded at a time: these wait for those above, for longer than the bytes of a replaced file stay.
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

/** A thumbnail of a picture that is uploaded for it, by a key of its own. */
async function thumbOf(picture: Uint8Array<ArrayBuffer>): Promise<Response> {
  const key = crypto.randomUUID();
  await upload(platform.service, "pictures", key, picture);
  return thumb("pictures", key, "40x40");
}

/** Different in each of its quarters, and wider than high. */
const PIXELS: Pixels = Array.from({ length: 16 }, (_, y) =>
  Array.from({ length: 32 }, (_, x) => (x < 16 ? 40 : 150) + (y < 8 ? 0 : 60) + y),
);

for (const orientation of [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
  for (const order of ["II", "MM"] as const) {
    test(`[ST331] a PNG and a WebP of orientation ${orientation} (${order}) are turned as a JPEG is`, async () => {
      const exif = exifOf(orientation, order);
      const wanted = await (await thumbOf(pngOfPixels(turned(PIXELS, orientation)))).bytes();
      expect(await (await thumbOf(pngOfPixels(PIXELS, exif))).bytes()).toEqual(wanted);
      const still = await new Bun.Image(pngOfPixels(PIXELS)).webp({ lossless: true }).bytes();
      for (const data of [exif, Buffer.concat([Buffer.from("Exif\0\0"), exif])]) {
        const answer = await thumbOf(webpWithExif(still, { width: 32, height: 16 }, data));
        expect([answer.status, await answer.bytes()]).toEqual([200, wanted]);
      }
    });
  }
}

test("[ST331] EXIF data that is cut short or malformed turns nothing", async () => {
  const upright = await (await thumbOf(pngOfPixels(PIXELS))).bytes();
  const whole = exifOf(6, "II");
  const beyond = Buffer.from(whole);
  beyond.writeUInt32LE(0xffff_fff0, 4);
  const cut = Array.from({ length: 20 }, (_, length) => whole.subarray(0, length));
  for (const exif of [...cut, beyond]) {
    const answer = await thumbOf(pngOfPixels(PIXELS, exif));
    expect([exif.byteLength, answer.status, await answer.bytes()]).toEqual([exif.byteLength, 200, upright]);
  }
});

for (const lossless of [true, false]) {
  test(`[ST331] the thumbnail of an animated WebP is that of its first frame (lossless: ${lossless})`, async () => {
    const frame = (pixels: Pixels) => new Bun.Image(pngOfPixels(pixels)).webp({ lossless }).bytes();
    const frames = [await frame(PIXELS), await frame(turned(PIXELS, 3))];
    const [first = new Uint8Array()] = frames;
    const answer = await thumbOf(animatedWebp(frames, { width: 32, height: 16 }));
    expect(answer.status).toBe(200);
    expect(await answer.bytes()).toEqual(await (await thumbOf(new Uint8Array(first))).bytes());
  });
}

test("[ST331] an animated WebP without a frame, or cut within one, is 415", async () => {
  const still = await new Bun.Image(pngOfPixels(PIXELS)).webp().bytes();
  const whole = animatedWebp([still], { width: 32, height: 16 });
  const empty = animatedWebp([], { width: 32, height: 16 });
  for (const file of [empty, whole.slice(0, 60), whole.slice(0, 90)]) expect((await thumbOf(file)).status).toBe(415);
});

test("[ST332] a picture of more scans, or more pixels on a side, than real ones have is refused before it is decoded", async () => {
  const tried = {
    "1,000 scans": progressiveJpeg(5_600, 1_000),
    "101 scans": progressiveJpeg(64, 101),
    "31 million rows": pngColumn(31_000_000),
    "65,536 rows": pngColumn(65_536),
  };
  for (const [name, picture] of Object.entries(tried)) {
    const answer = await thumbOf(picture);
    expect([name, answer.status, await answer.text()]).toEqual([name, 413, expect.stringMatching(/scans|per side/)]);
  }
  for (const picture of [progressiveJpeg(64, 100), pngColumn(65_535)])
    expect((await thumbOf(picture)).status).toBe(200);
});

test("[ST330] a hostile picture occupies no place of others, and is 413 where its time is over", async () => {
  await upload(platform.service, "pictures", "slow", await slowPng());
  for (let n = 0; n < 3; n++) await upload(platform.service, "hidden", `of others ${n}`, png(100, 100));
  const answers: string[] = [];
  const noted = async (name: string, answer: Promise<Response>) => {
    const { status } = await answer;
    answers.push(`${name}: ${status}`);
  };
  const slow = noted("slow", thumb("pictures", "slow", "40x40"));
  for (let n = 0; n < 3; n++) {
    await noted("other", platform.service.fetch(`${path("hidden", `of others ${n}`)}?thumb=40x40`));
  }
  await slow;
  // A fast machine decodes it in its time; `thumbs.test.ts` has one that never is.
  expect(answers).toEqual(["other: 200", "other: 200", "other: 200", expect.stringMatching(/^slow: (200|413)$/)]);
  expect(bytesOnDisk(platform, "thumbs").filter((name) => name.includes("."))).toEqual([]);
});

test("[ST330] a hostile picture is no longer decoded when its client is gone", async () => {
  const picture = await slowPng();
  for (let n = 0; n < 35; n++) await upload(platform.service, "pictures", `abandoned ${n}`, picture);
  await upload(platform.service, "pictures", "wanted", png(100, 100));
  const gone = new AbortController();
  const abandoned = Array.from({ length: 35 }, (_, n) =>
    thumb("pictures", `abandoned ${n}`, "40x40", { signal: gone.signal }).catch(() => null),
  );
  const wanted = thumb("pictures", "wanted", "40x40");
  await Bun.sleep(200);
  gone.abort();
  await Promise.all(abandoned);
  // Behind 35 of them it would wait for longer than requests may.
  expect((await wanted).status).toBe(200);
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
