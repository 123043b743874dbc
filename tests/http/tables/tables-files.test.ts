import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { png } from "../storage/pictures.ts";
import { bytesOnDisk, sendRaw } from "../storage/storage-support.ts";
import { type RecordFile, sendForm, sendRawForm, textOf } from "./tables-files-support.ts";

const CONFIG = `{
  storage: { buckets: {
    attachments: { access: {}, thumbs: ["20x20"], maxFileSize: 100_000 },
    small: { quota: { total: 100 } },
  } },
  databases: {
    shared: { tables: {
      docs: {
        schema: {
          title: { type: "text", max: 20 },
          owner: { type: "string" },
          cover: { type: "file", bucket: "attachments", max: 1000, types: ["image/*", "text/plain"] },
          attachments: { type: "file", bucket: "attachments", many: 3 },
          scan: { type: "file", bucket: "small" },
          scans: { type: "file", bucket: "small", many: 2 },
        },
        access: {
          read: (auth) => [["owner", "==", auth === null ? "" : auth.id]],
          insert: (auth, record) => auth !== null && record.owner === auth.id,
          update: (auth, record, next) => next.owner === record.owner,
          delete: true,
        },
      },
      open: {
        schema: { name: { type: "text" }, picture: { type: "file", bucket: "attachments" } },
        access: { read: true, insert: true, update: true, delete: true },
      },
      needy: {
        schema: { main: { type: "file", bucket: "attachments", required: true }, all: { type: "file", bucket: "attachments", many: 2, required: true } },
        access: { read: true, insert: true, update: true },
      },
      parents: { schema: { name: { type: "text" } }, access: { read: true, insert: true, delete: true } },
      children: {
        schema: { parentId: { references: "parents", onDelete: "cascade" }, file: { type: "file", bucket: "attachments" } },
        access: { read: true, insert: true, delete: true },
      },
      hooked: {
        schema: { name: { type: "text" }, file: { type: "file", bucket: "attachments" } },
        access: { read: true, insert: true, update: true },
        hooks: {
          beforeInsert: async (auth, record, app) => {
            if (record.name === "drop") return { ...record, file: null };
            if (record.name === "rename") return { ...record, id: "renamed", file: { ...record.file, name: "other", size: 1 } };
            if (!record.name?.startsWith("steal:")) return record;
            return { ...record, file: { id: record.name.slice(6), name: "x", size: 1, type: "x/y", url: "x" } };
          },
        },
      },
      inbox: {
        schema: { files: { type: "file", bucket: "attachments", many: 2 } },
        access: { insert: true, update: true },
      },
    } },
    spaces: {
      instance: true,
      access: { create: true, open: true },
      tables: { notes: { schema: { file: { type: "file", bucket: "attachments" } }, access: { read: true, insert: true, delete: true } } },
    },
  },
  serviceKeys: {},
}`;

interface Doc {
  id: string;
  title: string | null;
  cover: RecordFile | null;
  attachments: RecordFile[];
  scan: RecordFile | null;
}

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const DOCS = "/api/db/shared/tables/docs";

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  bob = await signIn(platform);
});
afterAll(() => platform.stop());

const insert = (files: Parameters<typeof sendForm>[2]["files"] = [], more: Record<string, unknown> = {}) =>
  sendForm<Doc>(ann, DOCS, { record: { title: "one", owner: ann.id, ...more }, files: files ?? [] });

const text = (field: string, content: string, name = "a.txt") => ({ field, content, name });

test("[TB720] [TB721] a form inserts a record with its files", async () => {
  const { status, body } = await insert([
    { field: "cover", content: "cover", name: "C:\\pictures\\täst\u0007.txt" },
    text("attachments", "one", "1.txt"),
    text("attachments", "two", "../../2.txt"),
  ]);
  expect(status).toBe(201);
  const { cover, attachments, scan } = body;
  expect(scan).toBeNull();
  const url = `${DOCS}/${body.id}/files/cover/${cover?.id}`;
  expect(cover).toEqual({
    id: expect.any(String),
    name: "täst.txt",
    size: 5,
    type: expect.stringMatching(/^text\/plain/),
    url,
  });
  expect(attachments.map(({ name, size }) => [name, size])).toEqual([
    ["1.txt", 3],
    ["2.txt", 3],
  ]);
  expect((await ann.get(`${DOCS}/${body.id}`)).body).toEqual(body as never);
  expect(await textOf(ann, url)).toBe("cover");
  expect(await Promise.all(attachments.map((file) => textOf(ann, file.url)))).toEqual(["one", "two"]);
});

test("[TB720] without files the values are null and an empty list", async () => {
  const plain = await ann.post<Doc>(DOCS, { owner: ann.id });
  expect(plain.body).toMatchObject({ cover: null, attachments: [] });
  const nothing = await ann.post<Doc>(DOCS, { owner: ann.id, cover: null, attachments: [] });
  expect([nothing.status, nothing.body.attachments]).toEqual([201, []]);
  expect((await ann.post<Doc>(DOCS, { owner: ann.id, attachments: null })).body.attachments).toEqual([]);
  const form = await sendForm<Doc>(platform, "/api/db/shared/tables/open", {
    files: [text("picture", "x")],
  });
  expect([form.status, form.body]).toMatchObject([201, { name: null, picture: { size: 1 } }]);
});

test("[TB720] a required field needs a file", async () => {
  const needy = "/api/db/shared/tables/needy";
  const none = await sendForm(platform, needy, { files: [text("main", "x")] });
  expect([none.status, none.body["data"]]).toMatchObject([400, { all: { code: "required" } }]);
  const other = await sendForm(platform, needy, { files: [text("all", "x")] });
  expect([other.status, other.body["data"]]).toMatchObject([400, { main: { code: "required" } }]);
  const both = await sendForm<{ id: string }>(platform, needy, { files: [text("main", "x"), text("all", "y")] });
  expect(both.status).toBe(201);
  const row = `${needy}/${both.body.id}`;
  for (const [name, value] of [
    ["main", null],
    ["all", null],
    ["all", []],
  ] as const) {
    const answer = await platform.patch(row, { [name]: value } as never);
    expect([answer.status, Object.keys((answer.body["data"] as object) ?? {})]).toEqual([400, [name]]);
  }
  const replaced = await sendForm(platform, row, {
    method: "PATCH",
    record: { all: [] },
    files: [text("main", "z"), text("all", "w")],
  });
  expect(replaced.status).toBe(200);
});

test("[TB721] other parts are 400 and named", async () => {
  const file = 'Content-Disposition: form-data; name="cover"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nx';
  const record = `Content-Disposition: form-data; name="record"\r\n\r\n${JSON.stringify({ owner: ann.id })}`;
  const part = (name: string, more = "") => `Content-Disposition: form-data; name="${name}"${more}\r\n\r\nx`;
  for (const [parts, name] of [
    [[record, record], "record"],
    [[part("record")], null],
    [['Content-Disposition: form-data; name="record"\r\n\r\n[]'], "record"],
    [[record, part("cover")], "cover"],
    [[record, part("title", '; filename="a"')], "title"],
    [[record, part("none", '; filename="a"')], "none"],
    [[record, file, file], "cover"],
  ] as const) {
    const { status, body } = await sendRawForm(ann, DOCS, parts);
    expect([parts.length, status]).toEqual([parts.length, 400]);
    if (name !== null) expect(Object.keys((body["data"] as object) ?? {})).toEqual([name]);
  }
  const picture = file.replace("cover", "picture");
  const late = await sendRawForm(platform, "/api/db/shared/tables/open", [picture, record]);
  expect([late.status, late.body]).toMatchObject([400, { data: { record: { code: "invalid_value" } } }]);
  const many = await insert(["1", "2", "3", "4"].map((content) => text("attachments", content)));
  expect([many.status, many.body]).toMatchObject([400, { data: { attachments: { code: "too_long" } } }]);
  expect((await sendRawForm(ann, DOCS, [record, file])).status).toBe(201);
});

test("[TB722] a form that is refused stores nothing, and is refused before its files have come", async () => {
  const before = bytesOnDisk(platform, "objects").length;
  const refused = [
    await insert([text("cover", "x")], { title: "far too long for this field" }),
    await insert([text("cover", "x")], { owner: bob.id }),
    await insert([text("cover", "x")], { unknown: 1 }),
    await insert([text("cover", "x"), text("cover", "y")]),
    await sendForm(platform, DOCS, { record: { owner: "x" }, files: [text("cover", "x")] }),
    await sendForm(ann, `${DOCS}/missing`, { method: "PATCH", files: [text("cover", "x")] }),
    await sendForm(ann, `${DOCS}?nonsense=1`, { record: { owner: ann.id }, files: [text("cover", "x")] }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([400, 403, 400, 400, 401, 404, 400]);
  expect(bytesOnDisk(platform, "objects").length).toBe(before);

  // The server answers although the file never ends.
  const head = `--X\r\nContent-Disposition: form-data; name="record"\r\n\r\n{"owner":"${bob.id}"}\r\n--X\r\nContent-Disposition: form-data; name="cover"; filename="a"\r\nContent-Type: text/plain\r\n\r\n${"x".repeat(2000)}`;
  const lines = [
    `POST ${DOCS} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${ann.token}`,
    "Content-Type: multipart/form-data; boundary=X",
    "Content-Length: 10000",
  ];
  const answer = await sendRaw(platform, `${lines.join("\r\n")}\r\n\r\n${head}`, 1_000);
  expect(answer).toStartWith("HTTP/1.1 403");
});

test("[TB723] a file that is too large or of another type is named", async () => {
  const large = await insert([text("cover", "x".repeat(1001))]);
  expect([large.status, large.body]).toMatchObject([413, { data: { cover: { code: "too_large" } } }]);
  const byBucket = await insert([text("attachments", "x".repeat(100_001))]);
  expect([byBucket.status, byBucket.body]).toMatchObject([413, { data: { attachments: { code: "too_large" } } }]);
  const type = await insert([{ field: "cover", content: "x", type: "text/html" }]);
  expect([type.status, type.body]).toMatchObject([415, { data: { cover: { code: "invalid_value" } } }]);
  for (const good of ["image/png", "IMAGE/x-any", "text/plain; charset=utf-8"]) {
    expect((await insert([{ field: "cover", content: "x", type: good }])).status).toBe(201);
  }
});

test("[TB723] [ST360] files of records count for the quota of their bucket, and give back", async () => {
  const used = async () => (await platform.service.get("/api/admin/storage/small")).body;
  const first = await insert([text("scan", "x".repeat(60))]);
  expect(first.status).toBe(201);
  const second = await insert([text("scan", "x".repeat(60))]);
  expect([second.status, second.body]).toMatchObject([413, { data: { quota: { code: "quota_exceeded" } } }]);
  expect(await used()).toMatchObject({ quota: { used: 60 } });
  expect((await ann.patch(`${DOCS}/${first.body.id}`, { scan: null })).status).toBe(200);
  await until("there is room again", async () => (await insert([text("scan", "x".repeat(60))])).status === 201);
});

test("[TB724] a file value in a plain insert is 400", async () => {
  const { cover } = (await insert([text("cover", "x")])).body;
  for (const [path, body] of [
    [DOCS, { owner: ann.id, cover }],
    [DOCS, { owner: ann.id, attachments: [cover] }],
    [`${DOCS}?upsert=true`, { id: "new-one", owner: ann.id, cover }],
  ] as const) {
    const answer = await ann.post(path, body as never);
    expect([answer.status, answer.body["data"]]).toMatchObject([400, {}]);
    expect((await platform.service.post(path, body as never)).status).toBe(400);
  }
  const batch = await ann.post(`${DOCS}/batch`, { inserts: [{ owner: ann.id, cover }] } as never);
  expect([batch.status, Object.keys(batch.body["data"] as object)]).toEqual([400, ["inserts.0.cover"]]);
  const operations = [{ table: "docs", action: "insert", data: { owner: ann.id, cover } }];
  expect((await ann.post("/api/db/shared/transaction", { operations } as never)).status).toBe(400);
});

test("[TB725] an update adds, keeps, orders, replaces and removes files", async () => {
  const { body: doc } = await insert([text("cover", "c"), text("attachments", "1"), text("attachments", "2")]);
  const row = `${DOCS}/${doc.id}`;
  const change = async (value: unknown, files: Parameters<typeof sendForm>[2]["files"] = []) =>
    files?.length === 0
      ? ann.patch<Doc>(row, value as never)
      : sendForm<Doc>(ann, row, { method: "PATCH", record: value, files: files ?? [] });
  const contents = async (of: Doc) => Promise.all(of.attachments.map(({ url }) => textOf(ann, url)));

  expect((await change({ cover: doc.cover, attachments: doc.attachments })).body.attachments).toEqual(doc.attachments);
  const added = await change({}, [text("attachments", "3")]);
  expect(await contents(added.body)).toEqual(["1", "2", "3"]);
  const over = await change({}, [text("attachments", "4")]);
  expect([over.status, over.body]).toMatchObject([400, { data: { attachments: { code: "too_long" } } }]);
  const [first, second, third] = added.body.attachments.map(({ id }) => ({ id }));
  expect(await contents((await change({ attachments: [third, first] })).body)).toEqual(["3", "1"]);
  expect(await contents((await change({ attachments: [first] }, [text("attachments", "5")])).body)).toEqual(["1", "5"]);
  for (const wrong of [
    [second],
    [{ id: "x" }],
    [first, first],
    "x",
    [1],
    { id: first?.id },
    [{ id: first?.id, other: 1 }],
  ]) {
    const answer = await change({ attachments: wrong });
    expect([wrong, answer.status]).toEqual([wrong, 400]);
    expect(answer.body).toMatchObject({ data: { attachments: {} } });
  }
  const replaced = await change({ title: "two" }, [text("cover", "d")]);
  expect([replaced.body.title, await textOf(ann, replaced.body.cover?.url ?? "")]).toEqual(["two", "d"]);
  expect((await change({ cover: doc.cover })).status).toBe(400);
  expect((await change({ cover: null })).body.cover).toBeNull();
  expect((await change({ attachments: { $op: "deleteField" } })).body.attachments).toEqual([]);
  const upserted = await sendForm<Doc>(ann, `${DOCS}?upsert=true`, {
    record: { id: doc.id, title: "three" },
    files: [text("cover", "e"), text("attachments", "6")],
  });
  expect([upserted.status, upserted.body.title, await contents(upserted.body)]).toEqual([200, "three", ["6"]]);
});

test("[TB726] hooks and keys cannot give a record a file of another one", async () => {
  const hooked = "/api/db/shared/tables/hooked";
  const { body: other } = await sendForm<{ id: string; file: RecordFile }>(platform, hooked, {
    record: { name: "a" },
    files: [text("file", "secret")],
  });
  for (const files of [[], [text("file", "mine")]]) {
    const stolen = await sendForm(platform, hooked, { record: { name: `steal:${other.file.id}` }, files });
    expect([stolen.status, stolen.body]).toMatchObject([400, { data: { file: { code: "invalid_value" } } }]);
  }
  const { body: own } = await sendForm<{ id: string; file: RecordFile }>(platform, hooked, {
    record: { name: "b" },
    files: [text("file", "own")],
  });
  expect((await platform.service.patch(`${hooked}/${own.id}`, { file: other.file } as never)).status).toBe(400);
  const renamed = await sendForm<{ id: string; file: RecordFile }>(platform, hooked, {
    record: { name: "rename" },
    files: [text("file", "moved", "m.txt")],
  });
  expect(renamed.body).toMatchObject({ id: "renamed", file: { name: "m.txt", size: 5 } });
  expect(await textOf(platform, renamed.body.file.url)).toBe("moved");
  const patched = await platform.service.patch<{ file: RecordFile }>(`${hooked}/${own.id}`, {
    file: { ...own.file, name: "x", size: 9 },
  } as never);
  expect(patched.body.file).toEqual(own.file);
  const before = bytesOnDisk(platform, "objects").length;
  const dropped = await sendForm<{ file: null }>(platform, hooked, {
    record: { name: "drop" },
    files: [text("file", "gone")],
  });
  expect(dropped.body.file).toBeNull();
  await until("the file is gone", () => bytesOnDisk(platform, "objects").length <= before);
});

test("[TB727] the bytes are for those who may read the record", async () => {
  const { body: doc } = await insert([text("cover", "0123456789")]);
  const url = doc.cover?.url ?? "";
  const { body: second } = await insert([text("cover", "x")]);
  const whole = await ann.fetch(url);
  expect([whole.status, whole.headers.get("content-type"), await whole.text()]).toEqual([
    200,
    expect.stringMatching(/^text\/plain/),
    "0123456789",
  ]);
  expect(whole.headers.get("etag")).toBe(`"${doc.cover?.id}"`);
  expect(whole.headers.get("cache-control")).toBe("private, no-cache");
  const part = await ann.fetch(url, { headers: { range: "bytes=2-4" } });
  expect([part.status, await part.text()]).toEqual([206, "234"]);
  expect((await ann.fetch(url, { headers: { range: "bytes=99-" } })).status).toBe(416);
  expect((await ann.fetch(url, { headers: { "if-none-match": `"${doc.cover?.id}"` } })).status).toBe(304);
  const head = await ann.fetch(url, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length")]).toEqual([200, "10"]);

  expect((await bob.fetch(url)).status).toBe(404);
  expect((await platform.fetch(url)).status).toBe(404);
  expect((await platform.service.fetch(url)).status).toBe(200);
  for (const wrong of [
    url.replace(doc.id, second.id),
    url.replace("/cover/", "/attachments/"),
    url.replace("/cover/", "/title/"),
    url.replace("/cover/", "/none/"),
    url.replace(doc.cover?.id ?? "", crypto.randomUUID()),
  ]) {
    expect([wrong, (await ann.fetch(wrong)).status]).toEqual([wrong, 404]);
  }
  for (const path of [`/api/storage/attachments/${doc.cover?.id}`, "/api/storage/attachments/files"]) {
    expect((await platform.service.fetch(path)).status).toBe(404);
  }
  const open = await sendForm<{ picture: RecordFile }>(platform, "/api/db/shared/tables/open", {
    files: [text("picture", "x")],
  });
  const shared = await platform.fetch(open.body.picture.url);
  expect([shared.status, shared.headers.get("cache-control")]).toEqual([200, "public, no-cache"]);
});

test("[TB727] [ST361] thumbnails are made, and the bucket's list has none of the files", async () => {
  const picture = png(40, 40);
  const { body: doc } = await sendForm<Doc>(ann, DOCS, {
    record: { owner: ann.id },
    files: [{ field: "attachments", content: picture, name: "p.png", type: "image/png" }],
  });
  const url = doc.attachments[0]?.url ?? "";
  const thumb = await ann.fetch(`${url}?thumb=20x20`);
  expect([thumb.status, thumb.headers.get("content-type")]).toEqual([200, "image/webp"]);
  expect((await ann.fetch(`${url}?thumb=30x30`)).status).toBe(400);
  expect((await bob.fetch(`${url}?thumb=20x20`)).status).toBe(404);
  expect((await platform.service.get("/api/storage/attachments")).body).toMatchObject({
    objects: [],
    truncated: false,
  });
  const page = await sendForm<{ picture: RecordFile }>(platform, "/api/db/shared/tables/open", {
    files: [{ field: "picture", content: "<script>", name: "a.html", type: "text/html" }],
  });
  const html = await platform.fetch(page.body.picture.url);
  expect([html.headers.get("content-security-policy"), html.headers.get("content-disposition")]).toEqual([
    "sandbox",
    "attachment; filename*=UTF-8''a.html",
  ]);
});

test("[TB728] files go with what has them", async () => {
  const before = bytesOnDisk(platform, "objects").length;
  const gone = (what: string) => until(`gone: ${what}`, () => bytesOnDisk(platform, "objects").length <= before);
  const { body: doc } = await insert([text("cover", "1"), text("attachments", "2")]);
  expect((await ann.delete(`${DOCS}/${doc.id}`)).status).toBe(200);
  expect((await ann.fetch(doc.cover?.url ?? "")).status).toBe(404);
  await gone("a deleted record");

  const children = "/api/db/shared/tables/children";
  await platform.post("/api/db/shared/tables/parents", { id: "p" });
  for (let count = 0; count < 3; count++) {
    const child = await sendForm(platform, children, { record: { parentId: "p" }, files: [text("file", "x")] });
    expect(child.status).toBe(201);
  }
  expect((await platform.delete("/api/db/shared/tables/parents/p")).status).toBe(200);
  await gone("a cascade");

  const { body: one } = await insert([text("cover", "1")]);
  const { body: two } = await insert([text("cover", "2")]);
  await ann.post(`${DOCS}/batch`, { deletes: [one.id], updates: [{ id: two.id, data: { cover: null } }] });
  await gone("a batch");

  for (const id of ["a", "b"]) {
    const note = await sendForm(platform, `/api/db/spaces/${id}/tables/notes`, { files: [text("file", "x")] });
    expect(note.status).toBe(201);
  }
  const again = await sendForm<{ file: RecordFile }>(platform, "/api/db/spaces/b/tables/notes", {
    files: [text("file", "y")],
  });
  expect(await textOf(platform, again.body.file.url)).toBe("y");
  for (const id of ["a", "b"])
    expect((await platform.service.delete(`/api/admin/instances/spaces/${id}`)).status).toBe(200);
  await gone("deleted instances");
});

test("[TB728] an instance that is created again has none of the files of the one before", async () => {
  const notes = "/api/db/spaces/again/tables/notes";
  const first = await sendForm<{ id: string; file: RecordFile }>(platform, notes, {
    record: { id: "n" },
    files: [text("file", "old")],
  });
  await platform.service.delete("/api/admin/instances/spaces/again");
  const second = await sendForm<{ id: string; file: RecordFile }>(platform, notes, {
    record: { id: "n" },
    files: [text("file", "new")],
  });
  expect(await textOf(platform, second.body.file.url)).toBe("new");
  expect((await platform.fetch(first.body.file.url)).status).toBe(404);
});

test("[TB730] who may not read a record learns nothing of its files", async () => {
  const inbox = "/api/db/shared/tables/inbox";
  const { status, body } = await sendForm<{ id: string }>(ann, inbox, { files: [text("files", "x")] });
  expect([status, Object.keys(body)]).toEqual([201, ["id"]]);
  const row = `${inbox}/${body.id}`;
  expect((await sendForm(ann, row, { method: "PATCH", files: [text("files", "x")] })).status).toBe(403);
  expect((await ann.patch(row, { files: [{ id: "x" }] })).status).toBe(403);
  expect((await ann.patch(row, { files: [] })).status).toBe(200);
});

test("[TB731] lists filter by files as by JSON", async () => {
  const open = "/api/db/shared/tables/open";
  const { body } = await sendForm<{ id: string }>(platform, open, { files: [text("picture", "x".repeat(77))] });
  const list = (filter: unknown) =>
    platform.get<{ items: { id: string }[] }>(open, { query: { filter: JSON.stringify(filter) } });
  expect((await list([["picture.size", "==", 77]])).body.items.map(({ id }) => id)).toEqual([body.id]);
  await platform.post(open, { name: "none" });
  expect((await list([["picture", "==", null]])).body.items.length).toBe(1);
});

test("[TB732] a form with an idempotency key is carried out once", async () => {
  const open = "/api/db/shared/tables/open";
  const headers = { "idempotency-key": "form-1" };
  const send = (content: string, { name = "a.txt", record = { name: "once" } as unknown } = {}) =>
    sendForm<{ id: string; picture: RecordFile }>(ann, open, {
      record,
      files: [text("picture", content, name)],
      headers,
    });
  const first = await send("one");
  expect(first.status).toBe(201);
  const before = bytesOnDisk(platform, "objects").length;
  const again = await send("one");
  expect([again.status, again.headers.get("idempotent-replay"), again.body]).toEqual([201, "true", first.body]);
  expect(await textOf(ann, again.body.picture.url)).toBe("one");
  for (const other of [
    await send("two"),
    await send("one", { name: "b.txt" }),
    await send("one", { record: { name: "twice" } }),
    await ann.post(open, { name: "once" }, { headers }),
  ]) {
    expect(other.status).toBe(422);
  }
  expect(bytesOnDisk(platform, "objects").length).toBeLessThanOrEqual(before);
  const found = await ann.get<{ total: number }>(`${open}/count`, {
    query: { filter: JSON.stringify([["name", "==", "once"]]) },
  });
  expect(found.body.total).toBe(1);
});

test("[TB732] so is a form of an update or an upsert, while others come and after its record is gone; a refused one may come again", async () => {
  const open = "/api/db/shared/tables/open";
  const send = (key: string, path: string, content: string, record: unknown, method = "POST") =>
    sendForm<{ id: string; picture: RecordFile }>(ann, path, {
      ...{ method, record, files: [text("picture", content)], headers: { "idempotency-key": key } },
    });
  const replayed = (answer: { status: number; headers: Headers }) => [
    answer.status,
    answer.headers.get("idempotent-replay"),
  ];
  const { body: made } = await send("forms-1", open, "one", { name: "forms" });
  const row = `${open}/${made.id}`;
  for (const [key, path, method, status] of [
    ["forms-2", row, "PATCH", 200],
    ["forms-3", `${open}?upsert=true`, "POST", 200],
  ] as const) {
    const record = { ...(method === "POST" ? { id: made.id } : {}), name: key };
    const first = await send(key, path, key, record, method);
    expect([first.status, first.headers.get("idempotent-replay")]).toEqual([status, null]);
    const again = await send(key, path, key, record, method);
    expect([...replayed(again), again.body]).toEqual([status, "true", first.body]);
    expect((await send(key, path, "other", record, method)).status).toBe(422);
    expect(await textOf(ann, first.body.picture.url)).toBe(key);
  }
  const atOnce = await Promise.all([1, 2, 3].map(() => send("forms-4", open, "at once", { name: "at once" })));
  expect(
    atOnce.filter(({ headers, status }) => status === 201 && headers.get("idempotent-replay") === null).length,
  ).toBe(1);
  expect(atOnce.every(({ status }) => status === 201 || status === 409)).toBe(true);
  expect(
    (await ann.get<{ total: number }>(`${open}/count?filter=${encodeURIComponent('[["name","==","at once"]]')}`)).body
      .total,
  ).toBe(1);
  // Nothing is kept of a refusal.
  expect((await send("forms-5", row, "x", { name: 5 }, "PATCH")).status).toBe(400);
  expect((await send("forms-5", row, "x", { name: "five" }, "PATCH")).status).toBe(200);
  expect((await platform.service.delete(row)).status).toBe(200);
  const late = await send("forms-2", row, "forms-2", { name: "forms-2" }, "PATCH");
  expect([...replayed(late), late.body as unknown]).toEqual([200, "true", { id: made.id }]);
});

test("[TB721] the record of a form has the bounds of a JSON body", async () => {
  const open = "/api/db/shared/tables/open";
  const large = await sendForm(platform, open, { record: { name: "x".repeat(11 * 1024 * 1024) } });
  expect(large.status).toBe(413);
  const deep = await sendForm(platform, open, { record: JSON.parse(`{"name":${"[".repeat(100)}${"]".repeat(100)}}`) });
  expect(deep.status).toBe(400);
});

test("[ST363] the files of one form count together while they arrive", async () => {
  const before = bytesOnDisk(platform, "objects").length;
  const answer = await insert([text("scans", "x".repeat(60)), text("scans", "x".repeat(60))]);
  expect([answer.status, answer.body]).toMatchObject([413, { data: { quota: { code: "quota_exceeded" } } }]);
  await until("nothing of it is left", () => bytesOnDisk(platform, "objects").length <= before);
});
