import { afterAll, beforeAll, expect, test } from "bun:test";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { png } from "../storage/pictures.ts";
import { type RecordFile, sendForm, textOf } from "./tables-files-support.ts";

const schema = `{
  owner: { type: "string" },
  title: { type: "text" },
  cover: { type: "file", bucket: "files" },
  all: { type: "file", bucket: "files", many: 3 },
}`;
const CONFIG = `{
  storage: { buckets: { files: { thumbs: ["20x20"] } } },
  serviceKeys: { reader: { key: "reader-key-0123456789abcdefghij", scopes: ["db:shared:docs:read"] } },
  databases: { shared: { tables: {
    docs: {
      schema: ${schema},
      fts: ["title"],
      access: {
        read: (auth) => [["owner", "==", auth === null ? "" : auth.id]],
        insert: true,
        update: true,
      },
    },
    open: { schema: ${schema}, access: { read: true, insert: true } },
    folders: {
      schema: {
        docIds: { type: "references", references: { table: "docs" }, mayBeHidden: true },
        mainId: { references: "docs", mayBeHidden: true },
        parentId: { references: "folders" },
        extra: { type: "json" },
      },
      access: { read: true, insert: true },
    },
  } } },
}`;
const DOCS = "/api/db/shared/tables/docs";
const FOLDERS = "/api/db/shared/tables/folders";
const OPEN = "/api/db/shared/tables/open";

interface Doc {
  id: string;
  cover: RecordFile;
  all: RecordFile[];
}

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
let doc: Doc;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  bob = await signIn(platform);
  doc = await insert(ann.id);
});
afterAll(() => platform.stop());

const insert = async (owner: string, path = DOCS, client: HttpClient = ann): Promise<Doc> => {
  const files = [
    { field: "cover", content: png(40, 40), name: "c.png", type: "image/png" },
    { field: "all", content: "one" },
    { field: "all", content: "two" },
  ];
  return (await sendForm<Doc>(client, path, { record: { owner, title: "signed" }, files })).body;
};
/** Without the origin, which is that of the server. */
const pathOf = (url: string): string => new URL(url, "http://x").pathname + new URL(url, "http://x").search;
const sign = async (client: { post: TestPlatform["post"] }, url: string, body: object = {}) =>
  client.post<{ url: string }>(`${url}/signed-url`, body as never);

test("[TB733] a signed url is good for one file without credentials", async () => {
  const [one, two] = doc.all;
  const { status, body } = await sign(ann, one?.url ?? "", { expiresIn: 60 });
  expect([status, body.url.startsWith("http")]).toEqual([200, true]);
  const path = pathOf(body.url);
  expect(await textOf(platform, path)).toBe("one");
  expect((await platform.fetch(path, { method: "HEAD" })).status).toBe(200);
  expect((await platform.fetch(path, { headers: { range: "bytes=1-" } })).status).toBe(206);
  const token = path.slice(path.indexOf("?"));
  const { all: others } = await insert(ann.id);
  for (const wrong of [
    (two?.url ?? "") + token,
    doc.cover.url + token,
    (others[0]?.url ?? "") + token,
    `${path}x`,
    path.replace(/token=\d+/, "token=99999999999"),
    `${one?.url}?token=`,
    `${one?.url}?token=x`,
  ]) {
    expect([wrong, (await platform.fetch(wrong)).status]).toEqual([wrong, 401]);
  }
  expect((await platform.fetch(`${DOCS}/${doc.id}${token}`)).status).toBe(400);
  expect((await platform.fetch(path, { method: "DELETE" })).status).toBe(405);
});

test("[TB733] only who may read the record signs, and a wrong expiry is 400", async () => {
  expect((await sign(bob, doc.cover.url)).status).toBe(404);
  expect((await sign(platform, doc.cover.url)).status).toBe(404);
  for (const expiresIn of [0, 604_801, 1.5, "60"]) {
    expect([expiresIn, (await sign(ann, doc.cover.url, { expiresIn })).status]).toEqual([expiresIn, 400]);
  }
  expect((await sign(ann, doc.cover.url, { other: 1 })).status).toBe(400);
  const key = platform.withKey("reader-key-0123456789abcdefghij");
  const byKey = await sign(key, doc.cover.url);
  expect((await platform.fetch(pathOf(byKey.body.url))).status).toBe(200);
});

test("[TB733] it ends with the right of its signer", async () => {
  const own = await insert(ann.id);
  const path = pathOf((await sign(ann, own.all[0]?.url ?? "")).body.url);
  expect((await platform.fetch(path)).status).toBe(200);
  await platform.service.patch(`${DOCS}/${own.id}`, { owner: bob.id });
  expect((await platform.fetch(path)).status).toBe(404);
  const carl = await signIn(platform);
  const other = await insert(carl.id, DOCS, carl);
  const signed = pathOf((await sign(carl, other.all[0]?.url ?? "")).body.url);
  expect((await platform.fetch(signed)).status).toBe(200);
  await platform.service.patch(`/api/auth/admin/users/${carl.id}`, { disabled: true });
  expect((await platform.fetch(signed)).status).toBe(401);
  const removed = pathOf((await sign(ann, doc.all[1]?.url ?? "")).body.url);
  await ann.patch(`${DOCS}/${doc.id}`, { all: [{ id: doc.all[0]?.id ?? "" }] });
  expect((await platform.fetch(removed)).status).toBe(404);
});

test("[TB734] lists, searches and GET one sign the urls of files", async () => {
  const mine = await insert(ann.id);
  const query = { signFiles: 600 };
  const one = await ann.get<Doc>(`${DOCS}/${mine.id}`, { query });
  const list = await ann.get<{ items: Doc[]; total: number }>(DOCS, {
    query: { ...query, filter: JSON.stringify([["id", "==", mine.id]]) },
  });
  const found = await ann.get<{ items: Doc[] }>(`${DOCS}/search`, { query: { ...query, q: "signed" } });
  expect([one.status, list.status, list.body.total, found.status]).toEqual([200, 200, 1, 200]);
  const searched = found.body.items.find(({ id }) => id === mine.id);
  for (const answered of [one.body, list.body.items[0], searched]) {
    expect(answered?.cover).toMatchObject({ id: mine.cover.id, size: mine.cover.size });
    const url = answered?.cover.url ?? "";
    expect(url).toStartWith(`${mine.cover.url}?token=`);
    expect((await platform.fetch(url)).status).toBe(200);
    const thumb = await platform.fetch(`${url}&thumb=20x20`);
    expect([thumb.status, thumb.headers.get("content-type")]).toEqual([200, "image/webp"]);
    expect(await Promise.all((answered?.all ?? []).map((file) => textOf(platform, file.url)))).toEqual(["one", "two"]);
  }
  // A signed value may be sent back.
  expect((await ann.patch(`${DOCS}/${mine.id}`, { all: one.body.all } as never)).status).toBe(200);
  expect((await ann.get<Doc>(`${DOCS}/${mine.id}`)).body.cover.url).toBe(mine.cover.url);
  for (const wrong of [0, -1, 604_801, "x", 1.5]) {
    for (const path of [DOCS, `${DOCS}/${mine.id}`, `${DOCS}/search?q=x`]) {
      expect([wrong, (await ann.get(path, { query: { signFiles: wrong } })).status]).toEqual([wrong, 400]);
    }
  }
});

test("[TB734] a signed list is not kept for other callers", async () => {
  await insert("anybody", OPEN);
  const tokens = new Set<string>();
  for (const client of [ann, ann, ann, bob, bob, platform]) {
    const { body } = await client.get<{ items: Doc[] }>(OPEN, { query: { signFiles: 600 } });
    const url = body.items[0]?.cover.url ?? "";
    tokens.add(url.split(".").at(-1) ?? "");
    expect((await platform.fetch(url)).status).toBe(200);
  }
  expect(tokens.size).toBe(3);
});

test("[TB736] files of expanded records are signed at every step of a path", async () => {
  const mine = await insert(ann.id);
  const hidden = await insert(bob.id, DOCS, bob);
  const { body: folder } = await ann.post<{ id: string }>(FOLDERS, { docIds: [mine.id, hidden.id], mainId: mine.id });
  await ann.post(FOLDERS, { docIds: [], mainId: mine.id, parentId: folder.id });
  type Shown = { expand: { docIds: Doc[]; mainId: Doc; parentId: Shown | null } };
  const query = { signFiles: 600, expand: "docIds,mainId,parentId.mainId", sort: "createdAt:desc", limit: 2 };
  const { body } = await ann.get<{ items: Shown[] }>(FOLDERS, { query });
  const [child, parent] = body.items.map(({ expand }) => expand);
  expect(parent?.docIds.map(({ id }) => id)).toEqual([mine.id]);
  for (const doc of [parent?.docIds[0], parent?.mainId, child?.mainId, child?.parentId?.expand.mainId]) {
    expect(doc?.cover.url).toStartWith(`${mine.cover.url}?token=`);
    expect((await platform.fetch(doc?.cover.url ?? "")).status).toBe(200);
    expect(doc?.all.map(({ url }) => url.includes("?token="))).toEqual([true, true]);
  }
  const back = await ann.get<{ expand: Record<string, { items: { expand: { mainId: Doc } }[] }> }>(
    `${DOCS}/${mine.id}`,
    { query: { signFiles: 600, expand: "folders(docIds).mainId" } },
  );
  const [again] = back.body.expand["folders(docIds)"]?.items ?? [];
  expect((await platform.fetch(again?.expand.mainId.cover.url ?? "")).status).toBe(200);
  const plain = await ann.get<Shown>(`${FOLDERS}/${folder.id}`, { query: { expand: "mainId" } });
  expect(plain.body.expand.mainId.cover.url).toBe(mine.cover.url);
  expect((await ann.get(FOLDERS, { query: { signFiles: 600, expand: "nothing" } })).status).toBe(400);
});
