import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { postInTwo } from "../../support/split-request.ts";
import { beginUpload, callMultipart, putPart } from "./storage-multipart-support.ts";
import { path, upload } from "./storage-support.ts";

const OPEN = "{ read: true, write: (auth) => auth !== null, delete: (auth) => auth !== null }";
/** A hook that stores `text` under `key`, and says what came of it. */
const CALLS = `
  schema: { key: { type: "string" }, text: { type: "string" }, outcome: { type: "string" } },
  hooks: { beforeInsert: async (auth, call, app) => {
    const stored = app.storage("code").put(call.key, new TextEncoder().encode(call.text));
    return { ...call, outcome: await stored.then(() => "stored", (cause) => cause.message) };
  } },`;
const bucketsOf = (quotas: Readonly<Record<string, string>>): string => {
  const entries = Object.entries(quotas).map(([name, quota]) => `${name}: { ${quota} access: ${OPEN} }`);
  return `{
    storage: { buckets: { ${entries.join(", ")} } },
    databases: { shared: { tables: { calls: { ${CALLS} } } } },
  }`;
};
const QUOTAS = {
  shared: "quota: { total: 1_000 },",
  each: "quota: { perUser: 1_000 },",
  both: "quota: { total: 1_500, perUser: 1_000 },",
  race: "quota: { total: 1_000 },",
  parts: "quota: { total: 1_000, perUser: 800 },",
  signed: "quota: { perUser: 500 },",
  restarted: "quota: { total: 1_000, perUser: 600 },",
  code: "quota: { total: 10 },",
  arriving: "quota: { perUser: 4_000_000 },",
  later: "",
};

let platform: TestPlatform;
let ann: SignedIn;
let ben: SignedIn;

beforeAll(async () => {
  platform = await testPlatform({ config: bucketsOf(QUOTAS) });
  ann = await signIn(platform);
  ben = await signIn(platform);
}, 60_000);
afterAll(() => platform.stop());

const bytes = (count: number): string => "x".repeat(count);
const put = async (client: HttpClient, bucket: string, key: string, size: number): Promise<number> =>
  (await upload(client, bucket, key, bytes(size))).status;
const remove = async (client: HttpClient, bucket: string, key: string): Promise<number> =>
  (await client.fetch(path(bucket, key), { method: "DELETE" })).status;

/** Returns the counts of the server, by owner; "" is everybody. */
function counted(bucket: string): Record<string, number> {
  using sqlite = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
  const rows = sqlite
    .query<{ ownerId: string; bytes: number }, [string]>("SELECT ownerId, bytes FROM storage_usage WHERE bucket = ?")
    .all(bucket);
  return Object.fromEntries(rows.map(({ ownerId, bytes: held }) => [ownerId, held]));
}

test("[ST300] over total: 413 with what is used and allowed, for users and service keys; nothing is stored", async () => {
  expect(await put(ann, "shared", "a", 600)).toBe(201);
  for (const client of [ben, platform.service]) {
    const refused = await upload(client, "shared", "b", bytes(401));
    const message = 'The bucket "shared" may hold 1000 bytes: 600 are in use, and 401 more were to be stored';
    expect(refused).toMatchObject({
      status: 413,
      body: { message, data: { quota: { code: "quota_exceeded", message } } },
    });
    expect((await client.fetch(path("shared", "b"))).status).toBe(404);
  }
  expect(await put(platform.service, "shared", "b", 400)).toBe(201);
  expect(await put(ben, "shared", "empty", 0)).toBe(201);
  expect(await put(ben, "shared", "c", 1)).toBe(413);
});

test("[ST301] perUser counts what each user has uploaded; service keys have none of their own", async () => {
  expect(await put(ann, "each", "a", 1_000)).toBe(201);
  const refused = await upload(ann, "each", "more", bytes(1));
  expect(refused.body).toMatchObject({
    message: 'Each user may hold 1000 bytes in the bucket "each": 1000 are in use, and 1 more were to be stored',
  });
  expect(await put(ben, "each", "b", 1_000)).toBe(201);
  expect(await put(platform.service, "each", "c", 5_000)).toBe(201);
  // In place of somebody else's file: it belongs to who uploads it.
  expect(await put(ben, "each", "a", 1)).toBe(413);
  expect(await put(platform.service, "each", "a", 10)).toBe(201);
  expect(await put(ann, "each", "a2", 1_000)).toBe(201);
});

test("[ST302] replaced and deleted files give back; what makes a file smaller is never refused", async () => {
  expect(await put(ann, "both", "a", 1_000)).toBe(201);
  expect(await put(ann, "both", "a", 900)).toBe(201);
  expect(await put(ann, "both", "a", 1_000)).toBe(201);
  expect(await put(ben, "both", "b", 501)).toBe(413);
  expect(await put(ben, "both", "b", 500)).toBe(201);
  expect(await remove(ann, "both", "a")).toBe(200);
  expect(counted("both")).toEqual({ "": 500, [ben.id]: 500 });
  expect(await put(ben, "both", "c", 500)).toBe(201);
  const answer = await ben.post("/api/storage/both/delete-batch", { keys: ["b", "c", "none"] });
  expect(answer.status).toBe(200);
  expect(counted("both")).toEqual({ "": 0 });
});

/** Bytes of bodies that have not ended. */
function stagedBytes(): number {
  const files = new Glob("**/incoming/*").scanSync({ cwd: platform.dataDirectory, absolute: true });
  return Array.from(files, (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0).reduce(
    (sum, size) => sum + size,
    0,
  );
}

test("[ST309] bodies that have not ended hold at most the quota, whichever way they come", async () => {
  const headers = { authorization: `Bearer ${ann.token}`, "content-type": "multipart/form-data; boundary=XYZ" };
  const head = '--XYZ\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';
  const send = (target: string, begin: string, method = "POST") =>
    postInTwo(platform.url + target, { method, headers, begin, restBytes: 9 });
  const signed = await ann.post<{ url: string }>("/api/storage/arriving/signed-upload-url", { key: "signed" });
  const { pathname, search } = new URL(signed.body.url);
  const uploadId = await beginUpload(ann, "parts", {}, "arriving");
  const held = send("/api/storage/arriving/upload", head + bytes(3_200_000));
  await until("the body is on the disk", () => stagedBytes() > 1_600_000);
  const refused = [
    send("/api/storage/arriving/upload", head + bytes(1_600_000)),
    send(pathname + search, bytes(1_600_000), "PUT"),
    send(`/api/storage/arriving/multipart/upload-part?uploadId=${uploadId}&partNumber=1&key=parts`, bytes(1_600_000)),
  ];
  expect(await Promise.all(refused.map(({ answered }) => answered))).toEqual([413, 413, 413]);
  held.drop();
  await until("its bytes are gone", () => stagedBytes() === 0);
  expect(await put(ann, "arriving", "whole", 3_800_000)).toBe(201);
});

test("[ST303] of many uploads at once only those pass that fit together", async () => {
  for (let round = 0; round < 3; round++) {
    const keys = Array.from({ length: 12 }, (_, index) => `r${round}-${index}`);
    const statuses = await Promise.all(
      keys.map((key, index) => put([ann, ben, platform.service][index % 3] ?? ann, "race", key, 300)),
    );
    expect(statuses.filter((status) => status === 201)).toHaveLength(3);
    expect(statuses.filter((status) => status === 413)).toHaveLength(9);
    expect(counted("race")[""]).toBe(900);
    await platform.service.post("/api/storage/race/delete-batch", { keys });
    expect(counted("race")).toEqual({ "": 0 });
  }
});

test("[ST304] parts of unfinished uploads count, once, and an abort gives them back", async () => {
  const first = { uploadId: await beginUpload(ann, "a", {}, "parts"), key: "a", bucket: "parts" };
  const second = { uploadId: await beginUpload(ann, "b", {}, "parts"), key: "b", bucket: "parts" };
  const one = await putPart(ann, first, 1, bytes(500));
  expect([one.status, (await putPart(ann, second, 1, bytes(301))).status]).toEqual([200, 413]);
  // A part in place of another.
  expect((await putPart(ann, first, 1, bytes(700))).status).toBe(200);
  const last = await putPart(ann, first, 1, bytes(800));
  expect([last.status, (await putPart(ann, first, 2, bytes(1))).status]).toEqual([200, 413]);
  expect(await put(ben, "parts", "c", 201)).toBe(413);
  expect(counted("parts")).toEqual({ "": 800, [ann.id]: 800 });
  // The file of 800 bytes takes the place of its parts: it does not need twice as much.
  const parts = [{ partNumber: 1, etag: last.body.etag }];
  const done = await callMultipart(ann, "complete", { uploadId: first.uploadId, key: "a", parts }, "parts");
  expect(done.status).toBe(200);
  expect(counted("parts")).toEqual({ "": 800, [ann.id]: 800 });
  expect(await remove(ann, "parts", "a")).toBe(200);
  expect((await putPart(ann, second, 1, bytes(300))).status).toBe(200);
  expect(counted("parts")).toEqual({ "": 300, [ann.id]: 300 });
  const aborted = await callMultipart(ann, "abort", { uploadId: second.uploadId, key: "b" }, "parts");
  expect(aborted.status).toBe(200);
  expect(counted("parts")).toEqual({ "": 0 });
});

test("[ST304] parts at once pass only as far as they fit together", async () => {
  const target = { uploadId: await beginUpload(ben, "p", {}, "parts"), key: "p", bucket: "parts" };
  const answers = await Promise.all(Array.from({ length: 8 }, (_, at) => putPart(ben, target, at + 1, bytes(300))));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
  await callMultipart(ben, "abort", { uploadId: target.uploadId, key: "p" }, "parts");
  expect(counted("parts")).toEqual({ "": 0 });
});

test("[ST305] a signed upload counts for the user who asked for its URL, and a refused one does not use it up", async () => {
  expect(await put(ann, "signed", "a", 400)).toBe(201);
  const { body } = await ann.post<{ url: string }>("/api/storage/signed/signed-upload-url", { key: "s" });
  const send = async (size: number): Promise<number> =>
    (await fetch(body.url, { method: "PUT", body: bytes(size) })).status;
  expect(await send(101)).toBe(413);
  expect(await send(100)).toBe(200);
  expect(counted("signed")).toEqual({ "": 500, [ann.id]: 500 });
});

test("[ST306] who may not write learns nothing of a quota", async () => {
  const visitor = await upload({ ...platform }, "shared", "v", bytes(5_000));
  expect(visitor.status).toBe(401);
  expect(JSON.stringify(visitor.body)).not.toContain("quota");
});

test("[ST307] counts survive a stop and a SIGKILL, and a bucket that gets a quota later is counted then", async () => {
  await put(ann, "restarted", "a", 500);
  await put(ann, "later", "a", 700);
  await put(platform.service, "later", "b", 200);
  const target = { uploadId: await beginUpload(ann, "p", {}, "later"), key: "p", bucket: "later" };
  await putPart(ann, target, 1, bytes(100));
  await platform.kill("SIGKILL");
  await platform.restart({ config: bucketsOf({ ...QUOTAS, later: "quota: { total: 1_000 }," }) });
  expect(await put(ann, "restarted", "b", 101)).toBe(413);
  expect(await put(ann, "restarted", "b", 100)).toBe(201);
  expect(counted("later")).toEqual({ "": 1_000, [ann.id]: 800 });
  expect(await put(ben, "later", "c", 1)).toBe(413);
  expect(await remove(platform.service, "later", "b")).toBe(200);
  await platform.kill("SIGTERM");
  // Without a quota nothing is counted, so the next quota counts anew.
  await platform.restart({ config: bucketsOf(QUOTAS) });
  expect(counted("later")).toEqual({});
  expect(await put(ben, "later", "c", 2_000)).toBe(201);
});

test("[ST308] code of the config is refused as well", async () => {
  const run = async (key: string, text: string) =>
    (await platform.service.post<{ outcome: string }>("/api/db/shared/tables/calls", { key, text })).body.outcome;
  expect(await run("a", "12345678")).toBe("stored");
  expect(await run("b", "123")).toContain("8 are in use, and 3 more were to be stored");
  expect((await platform.service.fetch(path("code", "b"))).status).toBe(404);
  expect([await run("a", "12345"), await run("b", "123")]).toEqual(["stored", "stored"]);
});
