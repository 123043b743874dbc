import { afterAll, beforeAll, expect, test } from "bun:test";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { upload } from "./storage-support.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const CONFIG = `{
  storage: { buckets: {
    open: { access: { read: true, write: true, delete: true } },
    own: { access: { read: (auth, file) => file.uploadedBy === auth?.id, write: true } },
    many: { access: { read: true, write: true } },
    last: { access: { read: true, write: true } },
    small: { maxFileSize: 1000, thumbs: ["40x40"], inline: true, quota: { total: 5000, perUser: 3000 }, access: { read: true, write: true } },
  } },
  serviceKeys: { reader: { key: "${READER}", scopes: ["storage:bucket:open:read"] } },
}`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  bob = await signIn(platform);
});
afterAll(() => platform.stop());

interface Page {
  objects: { key: string; size: number; contentType?: string; uploaded: string }[];
  folders?: string[];
  truncated: boolean;
  cursor: string | null;
}
const list = async (client: HttpClient, bucket: string, query: Record<string, string | number>): Promise<Page> =>
  (await client.get<Page>(`/api/storage/${bucket}`, { query })).body;
/** All pages, as one list of names. */
async function walk(client: HttpClient, bucket: string, query: Record<string, string | number>) {
  const [folders, keys]: [string[], string[]] = [[], []];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const page: Page = await list(client, bucket, { ...query, ...(cursor === null ? {} : { cursor }) });
    folders.push(...(page.folders ?? []));
    keys.push(...page.objects.map(({ key }) => key));
    cursor = page.cursor;
    pages++;
  } while (cursor !== null);
  return { folders, keys, pages };
}

test("[ST320] with a delimiter a list names each folder once, and files with their type", async () => {
  const keys = ["a", "a/1", "a/b/2", "a/b/3", "a!", "a0", "b/\u{10ffff}/x", "c/d/e/f"];
  for (const key of keys) await upload(platform.service, "open", key, "x", { type: "image/x-test" });
  const top = await list(platform.service, "open", { delimiter: "/" });
  expect(top).toEqual({
    objects: ["a", "a!", "a0"].map((key) => ({
      key,
      size: 1,
      contentType: "image/x-test",
      uploaded: expect.any(String),
    })),
    folders: ["a/", "b/", "c/"],
    truncated: false,
    cursor: null,
  });
  expect(await walk(platform.service, "open", { delimiter: "/", prefix: "a/" })).toMatchObject({
    folders: ["a/b/"],
    keys: ["a/1"],
  });
  expect(await walk(platform.service, "open", { delimiter: "/", prefix: "a" })).toMatchObject({
    folders: ["a/"],
    keys: ["a", "a!", "a0"],
  });
  // One at a time the same, and without the delimiter nothing has changed.
  const single = await walk(platform.service, "open", { delimiter: "/", limit: 1 });
  expect(single).toEqual({ folders: ["a/", "b/", "c/"], keys: ["a", "a!", "a0"], pages: 6 });
  expect((await list(platform.service, "open", { limit: 1 })).objects).toEqual([
    { key: "a", size: 1, uploaded: expect.any(String) },
  ]);
  expect((await platform.service.get("/api/storage/open?delimiter=x")).status).toBe(400);
});

test("[ST320] a folder of files whose names begin with the last character of all is left behind like any other", async () => {
  const keys = Array.from({ length: 60 }, (_, index) => `last/\u{10ffff}${index}`);
  for (const key of [...keys, "zz"]) await upload(platform.service, "last", key, "x");
  const page = await list(platform.service, "last", { delimiter: "/" });
  expect([page.folders, page.objects.map(({ key }) => key), page.cursor]).toEqual([["last/"], ["zz"], null]);
});

test("[ST320] [ST43] a folder is there for those who may read a file in it", async () => {
  await upload(ann, "own", "shared/a", "x");
  await upload(bob, "own", "shared/b", "x");
  await upload(bob, "own", "bob/c", "x");
  expect(await walk(ann, "own", { delimiter: "/" })).toMatchObject({ folders: ["shared/"], keys: [] });
  expect(await walk(bob, "own", { delimiter: "/" })).toMatchObject({ folders: ["bob/", "shared/"], keys: [] });
  expect(await walk(ann, "own", { delimiter: "/", prefix: "shared/" })).toMatchObject({ keys: ["shared/a"] });
});

test("[ST320] a folder of many files costs no more than one of few", async () => {
  for (let n = 0; n < 300; n++) await upload(platform.service, "many", `${n % 3}/${n}`, "x");
  expect(await walk(platform.service, "many", { delimiter: "/" })).toEqual({
    folders: ["0/", "1/", "2/"],
    keys: [],
    pages: 1,
  });
  expect((await walk(platform.service, "many", { delimiter: "/", prefix: "1/", limit: 30 })).keys).toHaveLength(100);
});

test("[ST321] a service key learns what a bucket allows, and what is used of its quota", async () => {
  await upload(ann, "small", "a", "x".repeat(700));
  expect((await platform.service.get("/api/admin/storage/small")).body).toEqual({
    name: "small",
    external: false,
    readOnly: false,
    inline: true,
    maxFileSize: 1000,
    thumbs: ["40x40"],
    quota: { total: 5000, perUser: 3000, used: 700 },
  });
  expect((await platform.service.get("/api/admin/storage/open")).body["quota"]).toBeNull();
  const reader = { headers: { "x-platform-service-key": READER } };
  expect((await platform.get("/api/admin/storage/open", reader)).status).toBe(200);
  expect((await platform.get("/api/admin/storage/small", reader)).status).toBe(403);
  expect((await platform.service.get("/api/admin/storage/nothing")).status).toBe(404);
  expect((await ann.get("/api/admin/storage/open")).status).toBe(401);
  expect((await platform.get("/api/admin/storage/open")).status).toBe(401);
});

test("[ST322] unfinished uploads are listed newest first, and aborted by a service key", async () => {
  const begin = async (client: HttpClient, bucket: string, key: string) =>
    (await client.post<{ uploadId: string }>(`/api/storage/${bucket}/multipart/create`, { key })).body.uploadId;
  const first = await begin(ann, "open", "film.mp4");
  const part = await ann.fetch(`/api/storage/open/multipart/upload-part?uploadId=${first}&key=film.mp4&partNumber=1`, {
    method: "POST",
    body: "x".repeat(90),
  });
  expect(part.status).toBe(200);
  await begin(ann, "own", "elsewhere");
  for (let n = 0; n < 3; n++) await begin(platform.service, "open", `key-${n}`);
  interface Listed {
    uploads: { uploadId: string; key: string; size: number; parts: number; ownerId: string | null }[];
    cursor: string | null;
  }
  const page = async (query: Record<string, string | number>) =>
    (await platform.service.get<Listed>("/api/admin/storage/open/uploads", { query })).body;
  const all = await page({});
  expect(all.uploads.map(({ key }) => key).sort()).toEqual(["film.mp4", "key-0", "key-1", "key-2"]);
  expect(all.uploads.at(-1)).toMatchObject({ uploadId: first, ownerId: ann.id, parts: 1, size: 90 });
  const paged: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const next: Listed = await page({ limit: 1, ...(cursor === "" ? {} : { cursor }) });
    paged.push(...next.uploads.map(({ uploadId }) => uploadId));
    cursor = next.cursor;
  }
  expect(paged).toEqual(all.uploads.map(({ uploadId }) => uploadId));
  const abort = await platform.service.post("/api/storage/open/multipart/abort", { uploadId: first, key: "film.mp4" });
  expect(abort.status).toBe(200);
  expect((await page({})).uploads).toHaveLength(3);
  const reader = { headers: { "x-platform-service-key": READER } };
  expect((await platform.get("/api/admin/storage/open/uploads", reader)).status).toBe(200);
  expect((await platform.get("/api/admin/storage/own/uploads", reader)).status).toBe(403);
  expect((await ann.get("/api/admin/storage/open/uploads")).status).toBe(401);
  const { cursor } = await list(platform.service, "open", { limit: 1 });
  const foreign = await platform.service.get(`/api/admin/storage/open/uploads?cursor=${cursor}`);
  expect(foreign.status).toBe(400);
});
