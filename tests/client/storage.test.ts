import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient, memoryStore, type PlatformError } from "../../src/client/index.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { errorOf } from "./support.ts";

const MIB = 1024 * 1024;

let platform: TestPlatform;
let proxy: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ auth: { anonymous: true }, storage: { buckets: {
      files: { access: { read: true, write: true, delete: true } },
      pictures: { thumbs: ["20x20"], access: { read: true, write: true } },
      fresh: { access: { read: true, write: (auth, file) => file.uploadedBy === undefined } },
      own: { maxFileSize: 100, access: { read: (auth, file) => file.uploadedBy === auth?.id, write: true } },
    } } }`,
  });
  proxy = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

async function signedIn(url = platform.url, store = memoryStore()) {
  const client = createClient({ url, store });
  if (client.auth.user === null) await client.auth.signInAnonymously();
  return client;
}

/** Bytes that differ everywhere, so that a part in a wrong place is noticed. */
function bytes(size: number): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(size / 4)).map((_, index) => index * 2_654_435_761);
  return new Uint8Array(words.buffer, 0, size);
}

const fileOf = (content: Uint8Array<ArrayBuffer>, name = "film.mp4", lastModified = 1_700_000_000_000) =>
  new File([content], name, { type: "video/mp4", lastModified });

const sameBytes = async (blob: Blob, content: Uint8Array) =>
  Buffer.compare(new Uint8Array(await blob.arrayBuffer()), content) === 0;

test("[TC80] a small file is stored with its type and metadata, read, listed, addressed and deleted", async () => {
  const client = await signedIn();
  const files = client.storage("files");
  const seen: number[] = [];
  const key = "a folder/ü & more?.txt";
  const entry = await files.upload(key, new Blob(["hello"], { type: "text/plain" }), {
    metadata: { film: "42" },
    onProgress: ({ loaded, total }) => seen.push(loaded, total),
  });
  expect(entry).toEqual({ key, size: 5, uploaded: expect.any(String) });
  expect(seen.slice(0, 2)).toEqual([0, 5]);
  expect(seen.slice(-2)).toEqual([5, 5]);
  expect(await (await files.download(key)).text()).toBe("hello");
  expect(await (await fetch(files.url(key))).text()).toBe("hello");
  expect(await (await fetch(await files.signedUrl(key, { expiresIn: 60 }))).text()).toBe("hello");
  expect(await files.metadata(key)).toMatchObject({
    key,
    contentType: expect.stringContaining("text/plain"),
    metadata: { film: "42" },
  });
  expect(await files.setMetadata(key, { film: null, seen: "1" })).toMatchObject({ metadata: { seen: "1" } });
  await files.upload("b", "text", { contentType: "text/csv" });
  expect(await files.list({ prefix: "a folder/" })).toEqual({ items: [entry], hasMore: false, cursor: null });
  const page = await files.list({ limit: 1 });
  expect([page.hasMore, (await files.list({ cursor: page.cursor })).items.map((one) => one.key)]).toEqual([
    true,
    ["b"],
  ]);
  await files.delete(key);
  expect(await files.metadata(key)).toBeNull();
  expect(files.url("x", { thumb: "20x20" })).toBe(`${platform.url}/api/storage/files/x?thumb=20x20`);
  client.close();
});

test("[TC324] a signed address of a thumbnail gives the picture in that size, to whoever has it", async () => {
  const client = await signedIn();
  const files = client.storage("pictures");
  await files.upload(
    "red.png",
    await Bun.file(new URL("../../docs/images/dashboard-tables.png", import.meta.url)).bytes(),
    {
      contentType: "image/png",
    },
  );
  const [{ url: another = "" } = {}] = await files.signedUrls(["red.png"], { thumb: "20x20" });
  for (const address of [await files.signedUrl("red.png", { expiresIn: 60, thumb: "20x20" }), another]) {
    const answer = await fetch(address);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/webp"]);
    expect((await answer.bytes()).length).toBeLessThan(2_000);
  }
  client.close();
});

test("[TC320] folders, links and deletions of many files, and the beginning of one", async () => {
  const client = await signedIn();
  const files = client.storage("files");
  const keys = ["many/1.txt", "many/2.txt", "many/deep/3.txt"];
  for (const key of keys) await files.upload(key, "hello", { contentType: "text/csv" });
  const item = { key: "many/1.txt", size: 5, contentType: "text/csv", uploaded: expect.any(String) };
  const first = await files.browse({ prefix: "many/", limit: 1 });
  expect(first).toEqual({ folders: [], items: [item], hasMore: true, cursor: expect.any(String) });
  const rest = await files.browse({ prefix: "many/", cursor: first.cursor });
  expect([rest.folders, rest.items.map(({ key }) => key)]).toEqual([["many/deep/"], ["many/2.txt"]]);
  const urls = await files.signedUrls([...keys, "nothing"], { expiresIn: 60 });
  expect(urls.map(({ key }) => key)).toEqual(keys);
  expect(await (await fetch(urls[2]?.url ?? "")).text()).toBe("hello");
  expect(await (await files.download("many/1.txt", { maxBytes: 2 })).text()).toBe("he");
  await files.upload("many/empty.txt", "");
  expect((await files.download("many/empty.txt", { maxBytes: 2 })).size).toBe(0);
  const { deleted, failed } = await files.deleteMany([...keys, "nothing"]);
  expect([deleted, failed.map(({ key }) => key)]).toEqual([keys, ["nothing"]]);
  client.close();
});

test("[TC80] a key that is none leads to no other bucket and no other endpoint", async () => {
  const client = await signedIn();
  const [files, own] = [client.storage("files"), client.storage("own")];
  await own.upload("other.txt", "of another bucket");
  for (const key of ["", ".", "..", "../own/other.txt", "../../auth/me", "a//b", "a/./b", "/a", "a/"]) {
    expect([key, await errorOf(files.download(key))]).toMatchObject([key, { code: "not_found" }]);
    expect([key, await errorOf(files.delete(key))]).toMatchObject([key, { code: "not_found" }]);
    expect([key, await files.metadata(key)]).toEqual([key, null]);
    expect(() => files.url(key)).toThrow();
  }
  expect(await (await own.download("other.txt")).text()).toBe("of another bucket");
  expect((await client.auth.reload())?.id).toBe(client.auth.user?.id ?? "");
  await files.upload("...", "three dots");
  expect(await (await files.download("...")).text()).toBe("three dots");
  await files.delete("...");
});

test("[TC82] an upload that one user began is not sent again as another one", async () => {
  const client = await signedIn(proxy.url);
  const files = client.storage("files");
  const before = proxy.connectionCount;
  proxy.refuse(true);
  proxy.cut();
  const error = errorOf(files.upload("of the first user", bytes(1_000)));
  await until("the first try has failed", () => proxy.connectionCount > before);
  proxy.refuse(false);
  await client.auth.signInAnonymously();
  expect(await error).toMatchObject({ code: "unauthenticated" });
  expect(await files.metadata("of the first user")).toBeNull();
});

test("[TC81] errors are a PlatformError with a code", async () => {
  const client = await signedIn();
  const code = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: PlatformError) => error.code,
    );
  expect(await code(client.storage("files").download("none"))).toBe("not_found");
  expect(await code(client.storage("own").upload("big", bytes(101)))).toBe("too_large");
  expect(await code(client.storage("own").upload("big", bytes(9 * MIB)))).toBe("too_large");
  const stranger = createClient({ url: platform.url, store: memoryStore() });
  expect(await code(stranger.storage("files").upload("x", "x"))).toBe("unauthenticated");
  client.close();
  stranger.close();
});

test("[TC82] a small upload whose connection is lost is sent again, and stored once", async () => {
  const client = await signedIn(proxy.url);
  // The rule takes new files alone: a second store would be refused.
  const cutsBefore = proxy.cutCount;
  proxy.cutAfter(2 * MIB, 2);
  expect((await client.storage("fresh").upload("photo", bytes(3 * MIB))).size).toBe(3 * MIB);
  expect(proxy.cutCount).toBe(cutsBefore + 2);
  expect(await sameBytes(await client.storage("fresh").download("photo"), bytes(3 * MIB))).toBe(true);
  client.close();
});

test("[TC82] an upload whose answer is lost is stored once", async () => {
  const client = await signedIn(proxy.url);
  proxy.loseAnswers(1);
  const entry = await client.storage("fresh").upload("unanswered", "bytes");
  expect(await client.storage("fresh").metadata("unanswered")).toMatchObject(entry);
  client.close();
});

test("[TC83] a large file is sent in parts, through connections that break again and again", async () => {
  const client = await signedIn(proxy.url);
  const content = bytes(25 * MIB + 123);
  const progress: number[] = [];
  const cutsBefore = proxy.cutCount;
  proxy.cutAfter(11 * MIB);
  const entry = await client
    .storage("files")
    .upload("large", new Blob([content]), { onProgress: ({ loaded }) => progress.push(loaded) });
  proxy.cutAfter(0, 0);
  expect(proxy.cutCount).toBeGreaterThan(cutsBefore + 1);
  expect(entry.size).toBe(content.byteLength);
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  expect(progress.at(-1)).toBe(content.byteLength);
  expect(await sameBytes(await client.storage("files").download("large"), content)).toBe(true);
  client.close();
}, 60_000);

test("[TC84] after a reload the same file goes on; another date begins anew", async () => {
  const store = memoryStore();
  const before = await signedIn(platform.url, store);
  const content = bytes(20 * MIB);
  const aborting = new AbortController();
  const upload = before.storage("files").upload("resumed", fileOf(content), {
    signal: aborting.signal,
    onProgress: ({ loaded }) => loaded >= 8 * MIB && aborting.abort(new Error("the page goes")),
  });
  await expect(upload).rejects.toThrow("the page goes");
  before.close();

  const other = await signedIn(platform.url, store);
  const progress: number[] = [];
  const onProgress = ({ loaded }: { loaded: number }) => progress.push(loaded);
  await other.storage("files").upload("resumed", fileOf(content), { onProgress });
  // The second says what is there already.
  expect(progress[1]).toBeGreaterThanOrEqual(8 * MIB);
  expect(await sameBytes(await other.storage("files").download("resumed"), content)).toBe(true);
  expect(await store.get(`platform.uploads@${platform.url}`)).toBeNull();
  // One of the same name and size that was changed since is another file.
  progress.length = 0;
  await other.storage("files").upload("resumed", fileOf(content, "film.mp4", 1), { onProgress });
  expect(progress[1]).toBeLessThan(8 * MIB);
  other.close();
});

test("[TC84] an upload with other metadata or another type begins anew, and is stored with them", async () => {
  const store = memoryStore();
  const client = await signedIn(platform.url, store);
  const content = bytes(12 * MIB);
  const aborting = new AbortController();
  const first = client.storage("files").upload("described", fileOf(content), {
    metadata: { of: "the first" },
    signal: aborting.signal,
    onProgress: ({ loaded }) => loaded > 4 * MIB && aborting.abort(),
  });
  await expect(first).rejects.toThrow();
  const described = { metadata: { of: "the second" }, contentType: "video/webm" };
  await client.storage("files").upload("described", fileOf(content), described);
  expect(await client.storage("files").metadata("described")).toMatchObject(described);
  client.close();
});

test("[TC84] an upload that the server does not know any more begins anew", async () => {
  const store = memoryStore();
  const client = await signedIn(platform.url, store);
  const content = bytes(12 * MIB);
  const aborting = new AbortController();
  const first = client.storage("files").upload("forgotten", fileOf(content), {
    signal: aborting.signal,
    onProgress: ({ loaded }) => loaded > 4 * MIB && aborting.abort(),
  });
  await expect(first).rejects.toThrow();
  const key = `platform.uploads@${platform.url}`;
  const [known] = JSON.parse((await store.get(key)) ?? "[]");
  await store.set(key, JSON.stringify([{ ...known, uploadId: crypto.randomUUID() }]));
  await client.storage("files").upload("forgotten", fileOf(content));
  expect(await sameBytes(await client.storage("files").download("forgotten"), content)).toBe(true);
  client.close();
});

test("[TC85] a signal ends an upload with its reason, and the parts of a file without a name", async () => {
  const client = await signedIn();
  const aborting = new AbortController();
  const reason = new Error("cancelled");
  const upload = client.storage("files").upload("aborted", bytes(30 * MIB), {
    signal: aborting.signal,
    onProgress: ({ loaded }) => loaded > 0 && aborting.abort(reason),
  });
  expect(await upload.catch((error) => error)).toBe(reason);
  expect(
    await client
      .storage("files")
      .upload("early", "x", { signal: AbortSignal.abort(reason) })
      .catch((e) => e),
  ).toBe(reason);
  expect(await client.storage("files").metadata("aborted")).toBeNull();
  client.close();
});

test("[TC83] a server that is killed in the middle of an upload is waited for", async () => {
  const client = await signedIn(proxy.url);
  const content = bytes(40 * MIB);
  let isKilled = false;
  const upload = client.storage("files").upload("killed", new Blob([content]), {
    onProgress({ loaded }) {
      if (isKilled || loaded < 8 * MIB) return;
      isKilled = true;
      void platform.kill().then(() => platform.restart());
    },
  });
  expect((await upload).size).toBe(content.byteLength);
  expect(isKilled).toBe(true);
  expect(await sameBytes(await client.storage("files").download("killed"), content)).toBe(true);
  client.close();
}, 60_000);
