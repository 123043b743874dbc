import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { path, randomBytes, upload } from "./storage-support.ts";

let s3: S3Server;
let platform: TestPlatform;
beforeAll(async () => {
  s3 = startS3Server("attic");
  const backend = {
    s3: { endpoint: s3.endpoint, bucket: "attic", region: "x", accessKeyId: "id", secretAccessKey: "s" },
  };
  platform = await testPlatform({
    config: {
      storage: {
        buckets: {
          remote: { backend, thumbs: ["8x8"], access: { read: true, write: true } },
        },
      },
    },
  });
});
afterAll(async () => {
  await platform.stop();
  await s3.stop();
});

test("[ST82] an upload to a store that fails is 503 and stores nothing; the old file stays", async () => {
  await upload(platform.service, "remote", "kept", "kept");
  s3.failing = true;
  expect((await upload(platform.service, "remote", "kept", "new")).status).toBe(503);
  expect((await upload(platform.service, "remote", "more", "new")).status).toBe(503);
  s3.failing = false;
  expect(await (await platform.fetch(path("remote", "kept"))).text()).toBe("kept");
  expect((await platform.head(path("remote", "more"))).status).toBe(404);
});

/** Returns the answer that a client gets: the status, and the bytes unless the connection is cut before the end. */
async function read(key: string, headers: Record<string, string> = {}): Promise<[number, number | "cut"]> {
  const answer = await platform.fetch(key, { headers });
  const bytes = await answer.bytes().catch(() => null);
  return [answer.status, bytes === null ? "cut" : bytes.byteLength];
}

test("[ST83] a store that fails is 503: for the whole file, a range, a thumbnail", async () => {
  await upload(platform.service, "remote", "small", "0123456789");
  await upload(platform.service, "remote", "large", randomBytes(3_000_000));
  s3.failing = true;
  for (const key of ["small", "large"]) {
    for (const [url, headers] of [
      [path("remote", key), {}],
      [path("remote", key), { range: "bytes=1-5" }],
      [`${path("remote", key)}?thumb=8x8`, {}],
    ] as const) {
      expect([url, (await read(url, headers))[0]]).toEqual([url, 503]);
    }
  }
  expect((await platform.head(path("remote", "small"))).status).toBe(200);
  s3.failing = false;
  expect(await read(path("remote", "small"))).toEqual([200, 10]);
  expect(await read(path("remote", "large"))).toEqual([200, 3_000_000]);
});

test("[ST83] a body that ends early is never a complete answer", async () => {
  s3.halving = true;
  expect((await read(path("remote", "small")))[0]).toBe(503);
  expect(await read(path("remote", "large"))).toEqual([200, "cut"]);
  expect((await read(path("remote", "large"), { range: "bytes=2000000-2000009" }))[0]).toBe(503);
  expect((await read(`${path("remote", "small")}?thumb=8x8`))[0]).toBe(503);
  s3.halving = false;
});
