import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

// Forms as clients of all kinds send them, in routes that have a schema and in those that read the form themselves.

const BASE = "/api/functions";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
import { defineConfig } from "platform";
import { t } from "elysia";

const shown = (value) => value instanceof File ? { name: value.name, type: value.type, size: value.size } : value;
const open = { access: true };

export default defineConfig({
  routes: (api) => api
    .post("/schema", ({ body }) => Object.fromEntries(Object.entries(body).map(([name, value]) => [name, shown(value)])),
      { ...open, body: t.Object({ file: t.Optional(t.File()), text: t.Optional(t.String()), role: t.Optional(t.String()) }) })
    .post("/own", async ({ request }) => Object.fromEntries([...await request.formData()].map(([name, value]) => [name, shown(value)])), open)
    .post("/values", ({ body }) => body, { ...open, body: t.Object({
      n: t.Number(), on: t.Boolean(), text: t.String(), tags: t.Array(t.String()), meta: t.Object({ a: t.Number() }), items: t.Array(t.Object({ n: t.Number() })),
    }) })
    .post("/files", ({ body }) => body.files.map(shown), { ...open, body: t.Object({ files: t.Files() }) })
    .post("/own-json", async ({ request }) => request.json(), open)
    .post("/own-bytes", async ({ request }) => Buffer.from(await request.bytes()).toString("hex"), open)
    .post("/text", ({ body }) => body, open)
    .post("/json", ({ body }) => body, { ...open, body: t.Object({ n: t.Number() }) })
    .post("/forced", ({ body }) => body, { ...open, parse: "json", body: t.Object({ n: t.Number() }) })
    .post("/parser", ({ body }) => body, { ...open, parse: ({ request }, type) => type === "text/own" ? request.text().then((text) => ({ n: Number(text) })) : undefined, body: t.Object({ n: t.Number() }) })
    .get("/rest/*", ({ params }) => params, open)
    .get("/name/:name", ({ params }) => params, open),
});`,
  });
});
afterAll(() => platform.stop());

const part = (disposition: string, content: string, more = ""): string =>
  `--XYZ\r\nContent-Disposition: form-data; ${disposition}\r\n${more}\r\n${content}\r\n`;

async function send(path: string, body: string | FormData, type?: string): Promise<[number, unknown]> {
  const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
  const response = await platform.fetch(`${BASE}${path}`, { method: "POST", body, headers });
  return [response.status, await response.json()];
}
const MULTIPART = "multipart/form-data; boundary=XYZ";
const PNG = "Content-Type: image/png\r\n";

const jpeg = (name: string) => ({ name, type: "image/png", size: 1 });

test.each([
  [
    "names without quotes, as .NET sends them",
    part("name=file; filename=a.jpg; filename*=utf-8''%C3%A9.jpg", "x", PNG),
    { file: jpeg("é.jpg") },
  ],
  [
    "a file name that is extended alone",
    part("name=\"file\"; filename*=UTF-8''a%20b.jpg", "x", PNG),
    { file: jpeg("a b.jpg") },
  ],
  ["a file name that ends with a backslash", part('name="file"; filename="a\\"', "x", PNG), { file: jpeg("a\\") }],
  ["escapes in a file name", part('name="file"; filename="a\\"b.jpg"', "x", PNG), { file: jpeg('a"b.jpg') }],
  ["a semicolon in a file name", part('name="file"; filename="a; name=b"', "x", PNG), { file: jpeg("a; name=b") }],
  [
    "a value that holds the boundary within a line",
    part('name="text"', 'a--XYZ\r\nContent-Disposition: form-data; name="role"\r\n\r\nadmin'),
    { text: 'a--XYZ\r\nContent-Disposition: form-data; name="role"\r\n\r\nadmin' },
  ],
  ["an empty file name", part('name="file"; filename=""', "x", PNG), { file: jpeg("") }],
])("[FN32] %s", async (_, parts, expected) => {
  for (const path of ["/schema", "/own"]) {
    expect([path, ...(await send(path, `${parts}--XYZ--\r\n`, MULTIPART))]).toEqual([path, 200, expected]);
    // Large ones are split as they arrive.
    const padding = part('name="text2"', "x".repeat(200_000)).replace("text2", path === "/own" ? "text2" : "role");
    const [status, answer] = await send(path, `${padding}${parts}--XYZ--\r\n`, MULTIPART);
    expect([path, status]).toEqual([path, 200]);
    expect(answer).toMatchObject(expected);
  }
});

test.each([
  ["no end", part('name="text"', "a")],
  ["no name", `${part("x=y", "a")}--XYZ--\r\n`],
  ["text that is no UTF-8", `${part('name="text"', "\udc80")}--XYZ--\r\n`],
])("[FN32] a form with %s is 400", async (what, body) => {
  for (const path of ["/schema", "/own"]) {
    const bytes = what.includes("UTF") ? Buffer.from(body.replace("\udc80", "\u0080"), "latin1") : Buffer.from(body);
    const response = await platform.fetch(`${BASE}${path}`, {
      method: "POST",
      body: bytes,
      headers: { "content-type": MULTIPART },
    });
    expect([path, response.status]).toEqual([path, 400]);
  }
});

test("[FN32] fields of forms become what the schema says", async () => {
  const form = new FormData();
  for (const [name, value] of [
    ["n", "1.5"],
    ["on", "true"],
    ["text", '{"a":1}'],
    ["tags", "a,b"],
    ["meta", '{"a":1}'],
    ["items[0].n", "1"],
    ["items[1].n", "2"],
  ] as const) {
    form.append(name, value);
  }
  const expected = { n: 1.5, on: true, text: '{"a":1}', tags: ["a,b"], meta: { a: 1 }, items: [{ n: 1 }, { n: 2 }] };
  expect(await send("/values", form)).toEqual([200, expected]);
  form.append("tags", "c");
  form.set("meta", '{"a":"1"}');
  const [status, answer] = await send("/values", form);
  expect([status, Object.keys((answer as { data: object }).data)]).toEqual([400, ["meta.a"]]);
  form.set("meta", '{"a":2}');
  expect(await send("/values", form)).toEqual([200, { ...expected, tags: ["a,b", "c"], meta: { a: 2 } }]);
});

test("[FN32] one file is a list of files where a list is wanted", async () => {
  const form = new FormData();
  form.append("files", new File(["x"], "a.png", { type: "image/png" }));
  expect(await send("/files", form)).toEqual([200, [jpeg("a.png")]]);
  form.append("files", new File(["y"], "b.png", { type: "image/png" }));
  expect(await send("/files", form)).toEqual([200, [jpeg("a.png"), jpeg("b.png")]]);
});

test.each(["/json", "/forced", "/parser"])(
  "[FN32] the type of a body at %s may be written in any way",
  async (path) => {
    for (const type of [
      "application/json",
      "Application/JSON",
      "application/json ; charset=utf-8",
      "application/vnd.api+json",
      "application/octet+JSON",
    ]) {
      expect([type, ...(await send(path, '{"n":1}', type))]).toEqual([type, 200, { n: 1 }]);
    }
    expect((await send(path, "<n>1</n>", "application/xml"))[0]).toBe(400);
    if (path === "/parser") expect(await send(path, "7", "text/own")).toEqual([200, { n: 7 }]);
  },
);

test.each([
  ["/json", "application/json", '{"n":1}'],
  ["/forced", "application/json", '{"n":1}'],
  ["/text", "application/json", '{"n":1}'],
  ["/text", "text/plain", "words"],
  ["/text", "application/octet-stream", "words"],
  ["/text", "application/x-www-form-urlencoded", "n=1"],
  ["/schema", "application/x-www-form-urlencoded", "text=a"],
  ["/schema", MULTIPART, `${part("name=text", "a")}--XYZ--\r\n`],
  ["/own", MULTIPART, `${part("name=text", "a")}--XYZ--\r\n`],
  ["/own-json", "application/json", '{"n":1}'],
])("[FN400] a compressed body at %s, %s, is 415 and its coding is named", async (path, type, body) => {
  for (const long of [body, body.padEnd(300_000)]) {
    for (const coding of ["gzip", "br", "identity, gzip"]) {
      const headers = { "content-type": type, "content-encoding": coding };
      const answer = await platform.fetch(`${BASE}${path}`, { method: "POST", headers, body: Bun.gzipSync(long) });
      expect([answer.status, await answer.json()]).toEqual([415, expect.objectContaining({ code: 415 })]);
      const plain = await platform.fetch(`${BASE}${path}`, { method: "POST", headers, body: long });
      expect([plain.status, await plain.text()]).toEqual([415, expect.stringContaining(`got ${coding}`)]);
    }
  }
  const headers = { "content-type": type, "content-encoding": "identity" };
  expect((await platform.fetch(`${BASE}${path}`, { method: "POST", headers, body })).status).toBe(200);
});

test("[FN400] a handler that reads the bytes itself gets them as they were sent", async () => {
  const body = Bun.gzipSync("words");
  const headers = { "content-type": "text/plain", "content-encoding": "gzip" };
  const answer = await platform.fetch(`${BASE}/own-bytes`, { method: "POST", headers, body });
  expect([answer.status, await answer.text()]).toEqual([200, Buffer.from(body).toString("hex")]);
});

test("[FN7] the rest of a path is decoded as parameters are", async () => {
  expect((await platform.get(`${BASE}/rest/a/b%20c%2Fd`)).body).toEqual({ "*": "a/b c/d" } as never);
  expect((await platform.get(`${BASE}/name/b%20c`)).body).toEqual({ name: "b c" } as never);
  expect((await platform.get(`${BASE}/rest/a/%zz`)).status).toBe(400);
});
