import { afterAll, beforeAll, expect, test } from "bun:test";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../support/index.ts";
import { bytesOnDisk, path, randomBytes, until, upload } from "./storage-support.ts";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      storage: {
        buckets: {
          files: { access: { read: true, write: true } },
          small: { maxFileSize: 100, access: { read: true, write: true } },
        },
      },
    },
  });
  ann = await signIn(platform);
  bob = await signIn(platform);
});
afterAll(() => platform.stop());

interface Part {
  partNumber: number;
  etag: string;
}

const begin = async (client: HttpClient, key: string, bucket = "files", more = {}) =>
  (await client.post<{ uploadId: string }>(`/api/storage/${bucket}/multipart/create`, { key, ...more })).body.uploadId;
const putPart = async (
  client: HttpClient,
  target: { uploadId: string; key: string; bucket?: string },
  partNumber: number | string,
  content: string | Uint8Array<ArrayBuffer>,
) => {
  const { uploadId, key, bucket = "files" } = target;
  const query = new URLSearchParams({ uploadId, key, partNumber: String(partNumber) });
  const answer = await client.fetch(`/api/storage/${bucket}/multipart/upload-part?${query}`, {
    method: "POST",
    body: content,
  });
  return { status: answer.status, body: (await answer.json()) as Part };
};
const call = (client: HttpClient, name: string, body: unknown, bucket = "files") =>
  client.post(`/api/storage/${bucket}/multipart/${name}`, body as never);
const listParts = (client: HttpClient, uploadId: string, key: string) =>
  client.get<{ parts: (Part & { size: number })[] }>(`/api/storage/files/uploads/${uploadId}/parts`, {
    query: { key },
  });

test("[ST60] parts in parallel and out of order become one file", async () => {
  const key = "dir/film.bin";
  const contents = Array.from({ length: 12 }, (_, index) => randomBytes(100_000 + index));
  const uploadId = await begin(ann, key, "files", { contentType: "video/mp4", metadata: { a: "b" } });
  const order = contents.map((_, index) => index).toReversed();
  const parts = await Promise.all(
    order.map(async (index) => (await putPart(ann, { uploadId, key }, index + 1, contents[index] ?? "")).body),
  );
  const listed = (await listParts(ann, uploadId, key)).body.parts;
  expect(listed.map(({ partNumber, size }) => [partNumber, size])).toEqual(
    contents.map((content, index) => [index + 1, content.byteLength]),
  );
  expect((await platform.fetch(path("files", key))).status).toBe(404);
  const done = await call(ann, "complete", {
    uploadId,
    key,
    parts: parts.toSorted((one, other) => one.partNumber - other.partNumber),
  });
  const whole = Buffer.concat(contents);
  expect(done).toMatchObject({ status: 200, body: { key, size: whole.byteLength } });
  expect(Object.keys(done.body).toSorted()).toEqual(["key", "size", "uploaded"]);
  const answer = await platform.fetch(path("files", key));
  expect(answer.headers.get("content-type")).toBe("video/mp4");
  expect(Buffer.from(await answer.arrayBuffer()).equals(whole)).toBe(true);
  expect((await ann.get(`${path("files", key)}/metadata`)).body).toMatchObject({ customMetadata: { a: "b" } });
});

test("[ST60] a part uploaded again replaces the earlier one, and an upload is resumed from the list", async () => {
  const key = "resumed";
  const uploadId = await begin(ann, key);
  const first = (await putPart(ann, { uploadId, key }, 1, "old")).body;
  await putPart(ann, { uploadId, key }, 1, "new-");
  await putPart(ann, { uploadId, key }, 3, "end");
  const { parts } = (await listParts(ann, uploadId, key)).body;
  expect(parts.map(({ partNumber }) => partNumber)).toEqual([1, 3]);
  expect((await call(ann, "complete", { uploadId, key, parts: [first] })).status).toBe(400);
  const named = parts.map(({ partNumber, etag }) => ({ partNumber, etag }));
  expect((await call(ann, "complete", { uploadId, key, parts: named })).status).toBe(200);
  expect(await (await platform.fetch(path("files", key))).text()).toBe("new-end");
});

test("[ST61] what complete and upload-part refuse", async () => {
  const key = "refused";
  const uploadId = await begin(ann, key);
  for (const number of [0, -1, 1.5, "x", 10_001, ""])
    expect((await putPart(ann, { uploadId, key }, number, "x")).status).toBe(400);
  const one = (await putPart(ann, { uploadId, key }, 1, "1")).body;
  const two = (await putPart(ann, { uploadId, key }, 10_000, "2")).body;
  const wrong = [
    undefined,
    "x",
    [],
    [{}],
    [null],
    [{ ...one, etag: "x" }],
    [one, { partNumber: 2, etag: one.etag }],
    [two, one],
    [one, one],
    [{ ...one, size: 2 }],
    [{ ...one, size: "1" }],
  ];
  for (const parts of wrong)
    expect([parts, (await call(ann, "complete", { uploadId, key, parts })).status]).toEqual([parts, 400] as never);
  for (const uploadId of [crypto.randomUUID(), "x"]) {
    expect((await call(ann, "complete", { uploadId, key })).status).toBe(400);
    expect((await call(ann, "complete", { uploadId, key, parts: [{}] })).status).toBe(400);
    expect((await call(ann, "complete", { uploadId, key, parts: [one] })).status).toBe(404);
  }
  expect((await call(ann, "complete", { key, parts: [one] })).status).toBe(400);
  expect((await call(ann, "complete", { uploadId, parts: [one] })).status).toBe(400);
  expect((await call(ann, "create", {})).status).toBe(400);
  expect((await call(ann, "create", { key: "a", metadata: { a: 1 } })).status).toBe(400);
  expect((await call(ann, "create", { key: "a", contentType: "x" })).status).toBe(400);
  expect((await call(ann, "abort", {})).status).toBe(400);
  expect((await ann.get(`/api/storage/files/uploads/${uploadId}/parts`)).status).toBe(400);
  expect((await call(ann, "complete", { uploadId, key, parts: [one, two] })).status).toBe(200);
});

test("[ST62] uploads that are not there, done, another's or another key's", async () => {
  const key = "private";
  const uploadId = await begin(ann, key);
  const part = (await putPart(ann, { uploadId, key }, 1, "x")).body;
  const complete = { uploadId, key, parts: [part] };
  expect((await putPart(bob, { uploadId, key }, 1, "y")).status).toBe(404);
  expect((await listParts(bob, uploadId, key)).status).toBe(404);
  expect((await call(bob, "complete", complete)).status).toBe(404);
  expect((await call(bob, "abort", { uploadId, key })).status).toBe(404);
  expect((await call(ann, "complete", { ...complete, key: "other" })).status).toBe(404);
  expect((await call(ann, "complete", complete, "small")).status).toBe(404);
  expect((await putPart(ann, { uploadId: "none", key }, 1, "y")).status).toBe(404);
  const both = await Promise.all([call(ann, "complete", complete), call(ann, "complete", complete)]);
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 404]);
  expect((await putPart(ann, { uploadId, key }, 2, "y")).status).toBe(404);
  expect((await call(ann, "abort", { uploadId, key })).status).toBe(404);
});

test("[ST3] the parts of an upload obey maxFileSize together", async () => {
  const target = { uploadId: await begin(ann, "big", "small"), key: "big", bucket: "small" };
  expect((await putPart(ann, target, 1, "x".repeat(101))).status).toBe(413);
  expect((await putPart(ann, target, 1, "x".repeat(60))).status).toBe(200);
  const over = await putPart(ann, target, 2, "x".repeat(41));
  expect(over).toMatchObject({ status: 413, body: { message: "The file must be at most 100 bytes" } });
  expect((await putPart(ann, target, 1, "x".repeat(100))).status).toBe(200);
  const racing = { uploadId: await begin(ann, "race", "small"), key: "race", bucket: "small" };
  const answers = await Promise.all([1, 2, 3].map((number) => putPart(ann, racing, number, "x".repeat(50))));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 413]);
});

test("[ST63] the bytes of parts go when an upload ends", async () => {
  const key = "ended";
  const uploadId = await begin(ann, key);
  const part = (await putPart(ann, { uploadId, key }, 1, "x")).body;
  const aborted = await begin(ann, key);
  await putPart(ann, { uploadId: aborted, key }, 1, "x");
  const before = bytesOnDisk(platform, "parts").length;
  expect(await call(ann, "abort", { uploadId: aborted, key })).toMatchObject({ status: 200, body: { ok: true } });
  expect((await call(ann, "complete", { uploadId, key, parts: [part] })).status).toBe(200);
  await until("parts are gone", () => bytesOnDisk(platform, "parts").length <= before - 2);
  expect((await upload(ann, "files", "after", "x")).status).toBe(201);
});

test("[ST110] parts of an upload that has ended go in steps, and what a killed server leaves goes after the next start", async () => {
  const key = "steps";
  const uploadId = await begin(ann, key);
  const before = bytesOnDisk(platform, "parts").length;
  const parts: Part[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, client) => {
      for (let number = client + 1; number <= 450; number += 8) {
        parts[number - 1] = (await putPart(ann, { uploadId, key }, number, `${number},`)).body;
      }
    }),
  );
  expect((await listParts(ann, uploadId, key)).body.parts.length).toBe(450);
  expect((await call(ann, "complete", { uploadId, key, parts })).status).toBe(200);
  expect((await call(ann, "complete", { uploadId, key, parts })).status).toBe(404);
  await platform.kill();
  await platform.restart();
  const whole = await (await ann.fetch(path("files", key))).text();
  expect(whole).toBe(Array.from({ length: 450 }, (_, index) => `${index + 1},`).join(""));
  await until("the parts are gone", () => bytesOnDisk(platform, "parts").length <= before, 20_000);
  expect((await call(ann, "complete", { uploadId, key, parts })).status).toBe(404);
}, 60_000);
