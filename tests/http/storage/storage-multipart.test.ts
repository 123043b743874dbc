import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type SignedIn, signIn, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { beginUpload, callMultipart, listParts, type Part, putPart } from "./storage-multipart-support.ts";
import { bytesOnDisk, path, until } from "./storage-support.ts";

const signals = temporaryDirectory();
const ASKED = join(signals, "asked");
const MAY_ANSWER = join(signals, "may-answer");

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `import { existsSync, writeFileSync } from "node:fs";
export default { storage: { buckets: {
  files: { access: { read: true, write: true } },
  small: { maxFileSize: 100, access: { read: true, write: true } },
  // About a file of three bytes it says that it was asked, and answers when it may.
  held: { access: { read: true, write: async (auth, file) => {
    if (file.size !== 3) return true;
    writeFileSync(${JSON.stringify(ASKED)}, "");
    while (!existsSync(${JSON.stringify(MAY_ANSWER)})) await Bun.sleep(10);
    return true;
  } } },
} } };`,
  });
  ann = await signIn(platform);
  bob = await signIn(platform);
});
afterAll(() => platform.stop());

test("[ST60] a part uploaded again replaces the earlier one, and an upload is resumed from the list", async () => {
  const key = "resumed";
  const uploadId = await beginUpload(ann, key);
  const first = (await putPart(ann, { uploadId, key }, 1, "old")).body;
  await putPart(ann, { uploadId, key }, 1, "new-");
  await putPart(ann, { uploadId, key }, 3, "end");
  const { parts } = (await listParts(ann, uploadId, key)).body;
  expect(parts.map(({ partNumber }) => partNumber)).toEqual([1, 3]);
  expect((await callMultipart(ann, "complete", { uploadId, key, parts: [first] })).status).toBe(400);
  const named = parts.map(({ partNumber, etag }) => ({ partNumber, etag }));
  expect((await callMultipart(ann, "complete", { uploadId, key, parts: named })).status).toBe(200);
  expect(await (await platform.fetch(path("files", key))).text()).toBe("new-end");
});

test("[ST61] complete and upload-part refuse wrong parts", async () => {
  const key = "refused";
  const uploadId = await beginUpload(ann, key);
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
    expect([parts, (await callMultipart(ann, "complete", { uploadId, key, parts })).status]).toEqual([
      parts,
      400,
    ] as never);
  for (const uploadId of [crypto.randomUUID(), "x"]) {
    expect((await callMultipart(ann, "complete", { uploadId, key })).status).toBe(400);
    expect((await callMultipart(ann, "complete", { uploadId, key, parts: [{}] })).status).toBe(400);
    expect((await callMultipart(ann, "complete", { uploadId, key, parts: [one] })).status).toBe(404);
  }
  expect((await callMultipart(ann, "complete", { key, parts: [one] })).status).toBe(400);
  expect((await callMultipart(ann, "complete", { uploadId, parts: [one] })).status).toBe(400);
  expect((await callMultipart(ann, "create", {})).status).toBe(400);
  expect((await callMultipart(ann, "create", { key: "a", metadata: { a: 1 } })).status).toBe(400);
  expect((await callMultipart(ann, "create", { key: "a", contentType: "x" })).status).toBe(400);
  expect((await callMultipart(ann, "abort", {})).status).toBe(400);
  expect((await ann.get(`/api/storage/files/uploads/${uploadId}/parts`)).status).toBe(400);
  expect((await callMultipart(ann, "complete", { uploadId, key, parts: [one, two] })).status).toBe(200);
});

test("[ST62] uploads that are unknown, ended, another owner's or another key's are 404", async () => {
  const key = "private";
  const uploadId = await beginUpload(ann, key);
  const part = (await putPart(ann, { uploadId, key }, 1, "x")).body;
  const complete = { uploadId, key, parts: [part] };
  expect((await putPart(bob, { uploadId, key }, 1, "y")).status).toBe(404);
  expect((await listParts(bob, uploadId, key)).status).toBe(404);
  expect((await callMultipart(bob, "complete", complete)).status).toBe(404);
  expect((await callMultipart(bob, "abort", { uploadId, key })).status).toBe(404);
  expect((await callMultipart(ann, "complete", { ...complete, key: "other" })).status).toBe(404);
  expect((await callMultipart(ann, "complete", complete, "small")).status).toBe(404);
  expect((await putPart(ann, { uploadId: "none", key }, 1, "y")).status).toBe(404);
  const both = await Promise.all([callMultipart(ann, "complete", complete), callMultipart(ann, "complete", complete)]);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  expect((await putPart(ann, { uploadId, key }, 2, "y")).status).toBe(404);
  expect((await callMultipart(ann, "abort", { uploadId, key })).status).toBe(404);
});

test("[ST62] an owner has at most 1000 unfinished uploads in a bucket", async () => {
  const create = (client: SignedIn, key: string) => callMultipart(client, "create", { key }, "small");
  const carol = await signIn(platform);
  const all = await Promise.all(Array.from({ length: 1_001 }, (_, index) => create(carol, `many/${index}`)));
  expect(all.map(({ status }) => status).filter((status) => status !== 200)).toEqual([409]);
  expect((await create(bob, "another owner's")).status).toBe(200);
});

test("[ST3] maxFileSize limits the sum of the parts of an upload", async () => {
  const target = { uploadId: await beginUpload(ann, "big", {}, "small"), key: "big", bucket: "small" };
  expect((await putPart(ann, target, 1, "x".repeat(101))).status).toBe(413);
  expect((await putPart(ann, target, 1, "x".repeat(60))).status).toBe(200);
  const over = await putPart(ann, target, 2, "x".repeat(41));
  expect(over).toMatchObject({ status: 413, body: { message: "The file must be at most 100 bytes" } });
  expect((await putPart(ann, target, 1, "x".repeat(100))).status).toBe(200);
  const racing = { uploadId: await beginUpload(ann, "race", {}, "small"), key: "race", bucket: "small" };
  const answers = await Promise.all([1, 2, 3].map((number) => putPart(ann, racing, number, "x".repeat(50))));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 413]);
});

/** Completes an upload of three bytes; `meanwhile` runs while the rule is asked, and the bytes of a part go before it answers. */
async function completeBeside(key: string, meanwhile: (target: { uploadId: string; key: string }) => Promise<void>) {
  for (const signal of [ASKED, MAY_ANSWER]) rmSync(signal, { force: true });
  const target = { uploadId: await beginUpload(ann, key, {}, "held"), key, bucket: "held" };
  await putPart(ann, target, 2, "x");
  const { body: part } = await putPart(ann, target, 1, "abc");
  const answer = callMultipart(ann, "complete", { uploadId: target.uploadId, key, parts: [part] }, "held");
  await until("the rule is asked", () => existsSync(ASKED));
  await meanwhile(target);
  await until("its bytes are gone", () => !bytesOnDisk(platform, "parts").includes(part.etag));
  writeFileSync(MAY_ANSWER, "");
  return { target, answer: await answer };
}

test("[ST62] complete beside an abort is 404, and nothing is left", async () => {
  const before = bytesOnDisk(platform, "objects").sort();
  const { answer } = await completeBeside("aborted", async ({ uploadId, key }) => {
    expect((await callMultipart(ann, "abort", { uploadId, key }, "held")).status).toBe(200);
  });
  expect(answer.status).toBe(404);
  expect((await platform.head(path("held", "aborted"))).status).toBe(404);
  expect(bytesOnDisk(platform, "objects").sort()).toEqual(before);
});

test("[ST61] complete beside a new upload of its part is 400, and may be repeated with the new one", async () => {
  const { target, answer } = await completeBeside("replaced", async (target) => {
    expect((await putPart(ann, { ...target, bucket: "held" }, 1, "abcd")).status).toBe(200);
  });
  expect([answer.status, answer.body]).toMatchObject([400, { message: expect.stringContaining("replaced") }]);
  const listed = await ann.get<{ parts: Part[] }>(`/api/storage/held/uploads/${target.uploadId}/parts`, {
    query: { key: target.key },
  });
  const parts = listed.body.parts.map(({ partNumber, etag }) => ({ partNumber, etag }));
  const { uploadId, key } = target;
  expect((await callMultipart(ann, "complete", { uploadId, key, parts }, "held")).status).toBe(200);
  expect(await (await platform.fetch(path("held", key))).text()).toBe("abcdx");
});

test("[ST110] the parts of an ended upload are removed in steps, after a kill by the next start", async () => {
  const key = "steps";
  const uploadId = await beginUpload(ann, key);
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
  expect((await callMultipart(ann, "complete", { uploadId, key, parts })).status).toBe(200);
  expect((await listParts(ann, uploadId, key)).status).toBe(404);
  await platform.kill();
  await platform.restart();
  const whole = await (await ann.fetch(path("files", key))).text();
  expect(whole).toBe(Array.from({ length: 450 }, (_, index) => `${index + 1},`).join(""));
  await until("the parts are gone", () => bytesOnDisk(platform, "parts").length <= before, 20_000);
  expect((await listParts(ann, uploadId, key)).status).toBe(404);
}, 60_000);
