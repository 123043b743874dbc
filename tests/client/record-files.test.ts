import { afterAll, beforeAll, expect, test } from "bun:test";
import { createAdminClient } from "../../src/client/admin/index.ts";
import { clientOf, createContext } from "../../src/client/client.ts";
import { createClient, memoryStore, PlatformError, type RecordFile } from "../../src/client/index.ts";
import { systemRuntime } from "../../src/client/runtime.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { errorOf } from "./support.ts";

// Records with files, by the client.

interface Post {
  [field: string]: unknown;
  id: string;
  title: string;
  cover: RecordFile | null;
  all: RecordFile[];
}

let platform: TestPlatform;
let proxy: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ auth: { anonymous: true }, storage: { buckets: { files: { thumbs: ["20x20"] } } },
      databases: { shared: { tables: {
        posts: {
          schema: {
            title: { type: "text", required: true },
            slug: { type: "string", unique: true },
            cover: { type: "file", bucket: "files", types: ["text/*"] },
            all: { type: "file", bucket: "files", many: 4 },
          },
          fts: ["title"],
          access: { read: true, insert: true, update: true },
        },
        replies: {
          schema: { postId: { references: "posts" } },
          access: { read: true, insert: true },
        },
      } } } }`,
  });
  proxy = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

async function signedIn(url = platform.url) {
  const client = createClient({ url, store: memoryStore() });
  await client.auth.signInAnonymously();
  return client;
}
const postsOf = (client: ReturnType<typeof createClient>) => client.db("shared").table("posts");
/** The fields of a record of an untyped client. */
const post = (record: unknown): Post => record as Post;
const file = (name: string, content = name, type = "text/plain") => new File([content], name, { type });
const TEXT = expect.stringMatching(/^text\/plain/);
const namesOf = (files: readonly RecordFile[]) => files.map(({ name }) => name);
const textOf = async ({ url }: RecordFile): Promise<string> => (await platform.fetch(url)).text();

test("[TC370] inserts, updates and upserts store the files among their values", async () => {
  const client = await signedIn();
  const posts = postsOf(client);
  const one = post(await posts.insert({ title: "one", cover: file("a.txt", "hello"), all: [file("b"), file("c")] }));
  expect(one).toMatchObject({ title: "one", cover: { name: "a.txt", size: 5, type: TEXT } });
  expect(namesOf(one.all)).toEqual(["b", "c"]);
  expect(await textOf(one.cover as RecordFile)).toBe("hello");
  expect(await posts.get(one.id)).toEqual(one as never);

  const replaced = post(await posts.update(one.id, { cover: new Blob(["new"], { type: "text/css" }), title: "two" }));
  expect([replaced.title, replaced.cover?.type.slice(0, 8), namesOf(replaced.all)]).toEqual([
    "two",
    "text/css",
    ["b", "c"],
  ]);
  // The stored ones of a list come first, in its order.
  const [b, c] = one.all;
  const ordered = post(await posts.update(one.id, { all: [file("d"), c, { id: b?.id }] }));
  expect(namesOf(ordered.all)).toEqual(["c", "b", "d"]);
  const added = post(await posts.update(one.id, { all: file("e") }));
  expect(namesOf(added.all)).toEqual(["c", "b", "d", "e"]);
  const only = post(await posts.update(one.id, { all: [file("f")], cover: null }));
  expect([namesOf(only.all), only.cover]).toEqual([["f"], null]);

  const upserted = post(await posts.upsert({ slug: "s", title: "x", all: [file("g")] }, { conflictTarget: "slug" }));
  const again = post(
    await posts.upsert({ slug: "s", title: "y", all: [...upserted.all, file("h")] }, { conflictTarget: "slug" }),
  );
  expect([again.id, again.title, namesOf(again.all)]).toEqual([upserted.id, "y", ["g", "h"]]);
  client.close();
});

test("[TC370] what the server refuses rejects, and names the field", async () => {
  const client = await signedIn();
  const posts = postsOf(client);
  const refused = async (work: Promise<unknown>) => {
    const error = await errorOf(work);
    return error instanceof PlatformError ? [error.status, Object.keys(error.fields)] : error;
  };
  const picture = file("p", "p", "image/png");
  expect(await refused(posts.insert({ title: "x", cover: picture }))).toEqual([415, ["cover"]]);
  expect(await refused(posts.insert({ title: "x", all: ["1", "2", "3", "4", "5"].map((n) => file(n)) }))).toEqual([
    400,
    ["all"],
  ]);
  expect(await refused(posts.insert({ cover: file("a") }))).toEqual([400, ["title"]]);
  expect(await refused(posts.insert({ title: "x", other: file("a") }))).toEqual([400, ["other"]]);
  expect(await refused(posts.batch({ inserts: [{ title: "x", cover: file("a") }] }))).toEqual([
    400,
    ["inserts.0.cover"],
  ]);
  client.close();
});

test("[TC371] progress goes up to the size of all files, and a signal ends the write", async () => {
  const client = await signedIn(proxy.url);
  const posts = postsOf(client);
  const seen: number[] = [];
  await posts.insert(
    { title: "progress", cover: file("a", "12345"), all: [file("b", "123")] },
    { onProgress: ({ loaded, total }) => seen.push(loaded, total) },
  );
  expect(seen.slice(0, 2)).toEqual([0, 8]);
  expect(seen.slice(-2)).toEqual([8, 8]);

  proxy.freeze(true);
  const ending = new AbortController();
  const title = "aborted";
  let isUnderWay = false;
  const onProgress = () => {
    isUnderWay = true;
  };
  const write = errorOf(posts.insert({ title, cover: file("a") }, { signal: ending.signal, onProgress }));
  await until("it is under way", () => isUnderWay);
  ending.abort("enough");
  expect(await write).toBe("enough");
  expect(await errorOf(posts.insert({ title, cover: file("a") }, { signal: ending.signal }))).toBe("enough");
  proxy.freeze(false);
  proxy.cut();
  expect(await posts.where("title", "==", title).count()).toBe(0);
  client.close();
});

test("[TC372] a form whose answer was lost is sent again with its key, and stored once", async () => {
  const client = await signedIn(proxy.url);
  const posts = postsOf(client);
  await posts.count();
  for (const title of ["lost", "lost twice"]) {
    proxy.cut();
    proxy.loseAnswers(title === "lost" ? 1 : 2);
    const stored = post(await posts.insert({ title, all: [file("a"), file("b")] }));
    expect(namesOf(stored.all)).toEqual(["a", "b"]);
    expect(await posts.where("title", "==", title).count()).toBe(1);
  }
  proxy.cutAfter(200_000, 1);
  const large = post(await posts.insert({ title: "cut", cover: file("large", "x".repeat(400_000)) }));
  expect([large.cover?.size, proxy.cutCount > 0]).toEqual([400_000, true]);
  client.close();
});

test("[TC372] a visitor's form is sent once", async () => {
  const client = createClient({ url: proxy.url, store: memoryStore() });
  const posts = postsOf(client);
  await posts.count();
  proxy.cut();
  proxy.loseAnswers(1);
  expect(await errorOf(posts.insert({ title: "nobody's", cover: file("a") }))).toMatchObject({ code: "network" });
  await until("it is stored", async () => (await posts.where("title", "==", "nobody's").count()) > 0);
  expect(await posts.where("title", "==", "nobody's").count()).toBe(1);
  client.close();
});

test("[TC373] offline a write with files is refused at once, and keeps nothing", async () => {
  const client = await signedIn();
  const posts = postsOf(client);
  const before = Object.getOwnPropertyDescriptor(navigator, "onLine");
  Object.defineProperty(navigator, "onLine", { value: false, configurable: true });
  try {
    const error = await errorOf(posts.insert({ title: "offline", cover: file("a") }));
    expect(error).toMatchObject({ code: "network", message: expect.stringContaining("Files need a connection") });
  } finally {
    if (before === undefined) Reflect.deleteProperty(navigator, "onLine");
    else Object.defineProperty(navigator, "onLine", before);
  }
  expect(await posts.where("title", "==", "offline").count()).toBe(0);
  client.close();
});

test("[TC374] live queries show what is known of the record until it is stored, or refused", async () => {
  const context = createContext({ url: platform.url, store: memoryStore() }, systemRuntime);
  const client = clientOf(context);
  await client.auth.signInAnonymously();
  const posts = postsOf(client as never);
  const kept = post(await posts.insert({ title: "live", all: [file("a")] }));
  const live = posts.where("title", "startsWith", "live").live();
  live.subscribe(() => {});
  await until("it is live", () => live.status === "live");
  // The form is sent when its record shows.
  const { fetch } = globalThis;
  const { promise: shown, resolve: show } = Promise.withResolvers<void>();
  globalThis.fetch = Object.assign(async (...sent: Parameters<typeof fetch>) => {
    if (sent[1]?.body instanceof FormData) await shown;
    return fetch(...sent);
  }, fetch);
  let changed: Post;
  try {
    const update = posts.update(kept.id, { title: "live 2", cover: file("c"), all: [...kept.all, file("b")] });
    await until("it shows before it is stored", () => post(live.items[0]).title === "live 2");
    expect(post(live.items[0])).toMatchObject({ title: "live 2", cover: null, all: kept.all });
    show();
    changed = post(await update);
  } finally {
    globalThis.fetch = fetch;
  }
  await until("it shows", () => (post(live.items[0]).cover?.name ?? "") === "c");
  expect(post(live.items[0])).toEqual(changed);
  const wrong = posts.update(kept.id, { title: "live 3", cover: file("p", "p", "image/png") });
  expect(await errorOf(wrong)).toMatchObject({ status: 415 });
  expect(post(live.items[0])).toEqual(changed);
  client.close();
});

test("[TC375] what is given is taken at the call", async () => {
  const client = await signedIn();
  const given = { title: "early", all: [file("a")] };
  const write = postsOf(client).insert(given);
  given.title = "late";
  given.all.push(file("b"));
  const stored = post(await write);
  expect([stored.title, namesOf(stored.all)]).toEqual(["early", ["a"]]);
  client.close();
});

test("[TC370] a service key writes files as well", async () => {
  const admin = createAdminClient({ url: platform.url, serviceKey: platform.serviceKey });
  const posts = admin.db("shared").table("posts");
  const stored = post(await posts.insert({ title: "key", cover: file("k") }));
  expect(await textOf(stored.cover as RecordFile)).toBe("k");
  expect(post(await posts.update(stored.id, { cover: file("l") })).cover?.name).toBe("l");
});

test("[TC376] signFiles gives urls that need no token, in lists, searches, single records and what they refer to", async () => {
  const client = await signedIn();
  const posts = postsOf(client);
  const stored = post(await posts.insert({ title: "signed", cover: file("s", "signed") }));
  await client.db("shared").table("replies").insert({ postId: stored.id });
  const query = posts.where("id", "==", stored.id);
  const options = { signFiles: 60 };
  const replies = client.db("shared").table("replies").expand("postId");
  const expanded = (await replies.first(options)) as unknown as { expand: { postId: Post } };
  const all = [
    await posts.get(stored.id, options),
    (await query.list(options)).items[0],
    await query.first(options),
    (await query.page(1, options)).items[0],
    (await query.search("signed", options)).items[0],
    expanded.expand.postId,
  ];
  for await (const page of query.pages(options)) all.push(page[0]);
  for (const found of all) expect(post(found).cover?.url).toStartWith(`${stored.cover?.url}?token=`);
  expect(post(await posts.get(stored.id)).cover).toEqual(stored.cover as never);
  client.close();
});
