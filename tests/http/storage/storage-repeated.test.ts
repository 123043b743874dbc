import { afterAll, beforeAll, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { Glob } from "bun";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { beginUpload, callMultipart, listParts, putPart } from "./storage-multipart-support.ts";
import { path } from "./storage-support.ts";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ storage: { buckets: {
      files: { access: { read: true, write: true } },
      // New files only: a repeated upload must not be taken for an overwrite.
      fresh: { access: { read: true, write: (auth, file) => file.uploadedBy === undefined } },
    } } }`,
  });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
});
afterAll(() => platform.stop());

interface Sent {
  status: number;
  replay: string | null;
  body: { size: number; uploaded: string };
}

async function send(client: HttpClient, bucket: string, key: string, content: string, once: string): Promise<Sent> {
  const form = new FormData();
  form.append("key", key);
  form.append("metadata", '{"a":"b"}');
  form.append("file", new Blob([content], { type: "text/plain" }), "f");
  const headers = { "idempotency-key": once };
  const answer = await client.fetch(`/api/storage/${bucket}/upload`, { method: "POST", body: form, headers });
  const body = (await answer.json()) as Sent["body"];
  return { status: answer.status, replay: answer.headers.get("idempotent-replay"), body };
}

test("[ST210] complete may be repeated, in turn and at once; the upload itself has ended", async () => {
  const key = "joined";
  const uploadId = await beginUpload(ann, key);
  const parts = [(await putPart(ann, { uploadId, key }, 1, "one")).body];
  const both = await Promise.all([1, 2].map(() => callMultipart(ann, "complete", { uploadId, key, parts })));
  const third = await callMultipart(ann, "complete", { uploadId, key, parts });
  expect([...both, third].map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(new Set([...both, third].map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect((await listParts(ann, uploadId, key)).status).toBe(404);
  expect((await callMultipart(ann, "abort", { uploadId, key })).status).toBe(404);
  await platform.restart();
  expect((await callMultipart(ann, "complete", { uploadId, key, parts })).body).toEqual(third.body);
});

/** Bytes of files that are being written. */
function bytesUnderWay(): number {
  const files = new Glob("**/incoming/*").scanSync({ cwd: platform.dataDirectory, absolute: true });
  return Array.from(files, (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0).reduce((a, b) => a + b, 0);
}

test("[ST213] an upload that is completed many times at once is joined once at a time", async () => {
  const key = "large";
  const uploadId = await beginUpload(ann, key);
  const size = 24 * 1024 * 1024;
  const parts = [(await putPart(ann, { uploadId, key }, 1, new Uint8Array(size))).body];
  const complete = () => callMultipart(ann, "complete", { uploadId, key, parts });
  let isDone = false;
  const completed = Promise.all(Array.from({ length: 12 }, complete)).finally(() => {
    isDone = true;
  });
  let most = 0;
  while (!isDone) {
    most = Math.max(most, bytesUnderWay());
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect((await completed).map(({ status }) => status)).toEqual(Array(12).fill(200));
  expect(most).toBeLessThanOrEqual(size);
});

test("[ST214] complete repeated with other parts is not answered as the first time", async () => {
  const key = "other parts";
  const uploadId = await beginUpload(ann, key);
  const first = (await putPart(ann, { uploadId, key }, 1, "one")).body;
  const second = (await putPart(ann, { uploadId, key }, 2, "two")).body;
  const complete = (parts: object[]) => callMultipart(ann, "complete", { uploadId, key, parts });
  expect((await complete([first, second])).status).toBe(200);
  const wrong = [[first], [second], [first, { ...second, etag: first.etag }], [{ partNumber: 9, etag: "made up" }]];
  for (const parts of wrong) expect((await complete(parts)).status).toBe(404);
  expect((await complete([first, second])).status).toBe(200);
});

test("[ST210] another user, key or bucket gets nothing of it, and a repetition stores nothing", async () => {
  const key = "own";
  const uploadId = await beginUpload(ann, key);
  const parts = [(await putPart(ann, { uploadId, key }, 1, "one")).body];
  await callMultipart(ann, "complete", { uploadId, key, parts });
  expect((await callMultipart(bob, "complete", { uploadId, key, parts })).status).toBe(404);
  expect((await callMultipart(ann, "complete", { uploadId, key: "other", parts })).status).toBe(404);
  expect((await callMultipart(ann, "complete", { uploadId, key, parts }, "fresh")).status).toBe(404);
  await send(ann, "files", key, "newer", "newer");
  expect((await callMultipart(ann, "complete", { uploadId, key, parts })).status).toBe(200);
  expect(await (await platform.fetch(path("files", key))).text()).toBe("newer");
});

test("[ST211] an upload with a key is stored once, also where the rule allows new files only", async () => {
  const first = await send(ann, "fresh", "photo", "bytes", "k1");
  expect([first.status, first.replay]).toEqual([201, null]);
  const again = await send(ann, "fresh", "photo", "bytes", "k1");
  expect(again).toEqual({ ...first, replay: "true" });
  expect((await send(ann, "fresh", "photo", "bytes", "k2")).status).toBe(403);
  for (const bucket of ["files", "fresh"]) {
    const atOnce = await Promise.all(Array.from({ length: 5 }, () => send(ann, bucket, "many", "bytes", "many")));
    expect(atOnce.map(({ status }) => status)).toEqual(Array(5).fill(201));
    expect(atOnce.filter(({ replay }) => replay === null)).toHaveLength(1);
    expect(new Set(atOnce.map(({ body }) => body.uploaded)).size).toBe(1);
  }
});

test("[ST211] keys belong to their caller and bucket; another file under a key is 422; a malformed key is 400", async () => {
  await send(ann, "files", "a", "bytes", "shared");
  expect((await send(bob, "files", "a", "other", "shared")).replay).toBeNull();
  expect((await send(ann, "fresh", "a", "bytes", "shared")).replay).toBeNull();
  expect((await send(ann, "files", "b", "bytes", "shared")).status).toBe(422);
  expect((await send(ann, "files", "a", "longer bytes", "shared")).status).toBe(422);
  expect((await send(ann, "files", "a", "bytes", "x".repeat(129))).status).toBe(400);
  expect((await send(platform.service, "files", "a", "bytes", "shared")).status).toBe(201);
  expect((await send(platform.service, "files", "a", "bytes", "shared")).replay).toBe("true");
});
