import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { openSocket, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { postInTwo } from "../../support/split-request.ts";
import { upload } from "../storage/storage-support.ts";

// What a rule has looked up may be gone when the body of its request has arrived, which may take hours.

let platform: TestPlatform;
let ann: SignedIn;

const CONFIG = `
  const gate = { isOpen: true };
  const isMember = (auth, db) => {
    const answer = auth !== null && db("teams").table("members").get(auth.id) !== null;
    console.error("asked: " + answer);
    return answer;
  };
  const plain = (auth, _file, { db }) => isMember(auth, db);
  const later = async (auth, _file, { db }) => isMember(auth, db);
  const opened = async () => { while (!gate.isOpen) await new Promise((done) => setTimeout(done, 5)); };
  const gatedLater = async (auth, _file, { db }) => { const answer = isMember(auth, db); await opened(); return answer; };
  const gatedByFile = async (auth, file, { db }) => {
    const answer = file.key !== "" && isMember(auth, db);
    await opened();
    return answer;
  };
  const route = (auth, { db }) => isMember(auth, db);
  export default {
    databases: { teams: { tables: { members: {} } } },
    storage: { buckets: {
      plain: { access: { read: true, write: plain, delete: plain } },
      later: { access: { read: true, write: later, delete: later } },
      gated: { access: { read: gatedLater, write: gatedLater, delete: gatedLater } },
      gatedByFile: { access: { read: gatedByFile, write: gatedByFile, delete: gatedByFile } },
    } },
    routes: (api) => api
      .post("/json", ({ body, app }) => app.db("teams").table("members").insert({ id: "by-" + body.text }), { access: route })
      .post("/raw", async ({ request, app }) => app.db("teams").table("members").insert({ id: "by-" + await request.text() }), { access: route, parse: "none" })
      .post("/clone", async ({ request, app }) => app.db("teams").table("members").insert({ id: "by-" + (await request.clone().text()).length }), { access: route, parse: "none" })
      .post("/large", async ({ request, app }) => app.db("teams").table("members").insert({ id: "by-" + (await request.clone().json()).text.length }), { access: route, parse: "none" })
      .post("/form", async ({ request, app }) => app.db("teams").table("members").insert({ id: "by-" + [...await request.clone().formData()].length }), { access: route, parse: "none" })
      .get("/gated", () => ({ passed: true }), { access: async (auth, { db }) => {
        const answer = isMember(auth, db);
        while (!gate.isOpen) await new Promise((done) => setTimeout(done, 5));
        return answer;
      } })
      .post("/gate", ({ body }) => { gate.isOpen = body.isOpen; return "ok" }, { access: true })
      .ws("/member", { access: route, open(ws) { ws.send({ open: true }) } })
      .ws("/editor", { access: (auth) => auth?.role === "editor", open(ws) { ws.send({ role: ws.data.auth.role }) } })
      .ws("/anybody", { access: true, open(ws) { ws.send({ role: ws.data.auth?.role ?? null }) } }),
  };`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

const members = "/api/db/teams/tables/members";
beforeEach(async () => {
  await platform.service.delete(`${members}/${ann.id}`);
  expect((await platform.service.post(members, { id: ann.id })).status).toBe(201);
});

/** Sends a request whose body ends after Ann has left, which she does when a rule has been asked. Gives the status. */
async function sendSlowly(
  path: string,
  {
    method = "POST",
    headers = {},
    begin,
    rest,
  }: { method?: string; headers?: Record<string, string>; begin: string; rest: string },
): Promise<number> {
  const timesAsked = () => platform.stderr().split("asked: true").length;
  const askedBefore = timesAsked();
  const sent = { authorization: `Bearer ${ann.token}`, ...headers };
  const request = postInTwo(platform.url + path, { method, headers: sent, begin, restBytes: Buffer.byteLength(rest) });
  await until("the rule has been asked", () => timesAsked() > askedBefore);
  expect((await platform.service.delete(`${members}/${ann.id}`)).status).toBe(200);
  return request.end(rest);
}

const exists = async (bucket: string, key: string) =>
  (await platform.fetch(`/api/storage/${bucket}/${key}`)).status === 200;

test.each(["plain", "later"])("[ST212] an upload to %s whose right goes while its body comes", async (bucket) => {
  const part = (head: string, content: string) =>
    `--XYZ\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
  const form = part('name="key"', "late") + part('name="file"; filename="a"', "content");
  const status = await sendSlowly(`/api/storage/${bucket}/upload`, {
    headers: { "content-type": "multipart/form-data; boundary=XYZ" },
    begin: form,
    rest: "--XYZ--\r\n",
  });
  expect([status, await exists(bucket, "late")]).toEqual([403, false]);
});

test.each(["plain", "later"])("[ST212] metadata of a file in %s", async (bucket) => {
  await upload(platform.service, bucket, "meta", "x");
  const status = await sendSlowly(`/api/storage/${bucket}/meta/metadata`, {
    method: "PATCH",
    begin: '{"a":',
    rest: '"b"}',
  });
  expect(status).toBe(403);
});

test.each(["plain", "later"])("[ST212] files deleted from %s", async (bucket) => {
  await upload(platform.service, bucket, "gone", "x");
  await sendSlowly(`/api/storage/${bucket}/delete-batch`, { begin: '{"keys":', rest: '["gone"]}' });
  expect(await exists(bucket, "gone")).toBe(true);
});

test.each(["json", "raw"])("[FN25] a route that reads its body as %s", async (name) => {
  const status = await sendSlowly(`/api/functions/${name}`, { begin: '{"text":', rest: `"${name}"}` });
  expect(status).toBe(403);
});

test("[FN25] a route that reads a copy of its request", async () => {
  const form = "multipart/form-data; boundary=XYZ";
  const field = '--XYZ\r\nContent-Disposition: form-data; name="a"\r\n\r\n';
  for (const [path, begin, rest, type] of [
    ["clone", '{"text":', '"x"}', "application/json"],
    ["large", '{"text":"', `${"x".repeat(100_000)}"}`, "application/json"],
    ["form", field, "x\r\n--XYZ--\r\n", form],
    ["form", field, `${"x".repeat(100_000)}\r\n--XYZ--\r\n`, form],
  ] as const) {
    const status = await sendSlowly(`/api/functions/${path}`, { headers: { "content-type": type }, begin, rest });
    expect([path, status]).toEqual([path, 403]);
    expect((await platform.service.post(members, { id: ann.id })).status).toBe(201);
  }
});

test("[FN33] a rule of a route that is awaited answers for the records of now", async () => {
  await platform.post("/api/functions/gate", { isOpen: false });
  const timesAsked = () => platform.stderr().split("asked: true").length;
  const before = timesAsked();
  const asked = ann.get("/api/functions/gated");
  await until("the rule has been asked", () => timesAsked() > before);
  expect((await platform.service.delete(`${members}/${ann.id}`)).status).toBe(200);
  await platform.post("/api/functions/gate", { isOpen: true });
  expect((await asked).status).toBe(403);
  expect((await platform.service.post(members, { id: ann.id })).status).toBe(201);
  expect((await ann.get("/api/functions/gated")).status).toBe(200);
});

const open = (path: string, { token }: SignedIn) =>
  openSocket(`${platform.wsUrl}/api/functions/${path}`, { authorization: `Bearer ${token}` });

test("[FN33] a WebSocket of a route ends with the records by which its rule allowed it", async () => {
  const [socket, other] = [await open("member", ann), await open("anybody", ann)];
  for (const one of [socket, other]) await one.next();
  expect((await platform.service.post(members, { id: "somebody-else" })).status).toBe(201);
  expect((await platform.service.delete(`${members}/${ann.id}`)).status).toBe(200);
  expect((await socket.closed).code).toBe(4003);
  await expect(open("member", ann)).rejects.toThrow();
  await other.close();
});

test("[FN33] a WebSocket of a route ends when its user has another role", async () => {
  const editor = await signIn(platform, { role: "editor" });
  const [socket, other, ofAnn] = [
    await open("editor", editor),
    await open("anybody", editor),
    await open("anybody", ann),
  ];
  for (const one of [socket, other, ofAnn]) await one.next();
  const changed = await platform.service.patch(`/api/auth/admin/users/${editor.id}`, { role: "user" });
  expect(changed.status).toBe(200);
  expect([(await socket.closed).code, (await other.closed).code]).toEqual([4003, 4003]);
  await expect(open("editor", editor)).rejects.toThrow();
  const again = await open("anybody", editor);
  expect(await again.next()).toEqual({ role: "user" });
  for (const one of [again, ofAnn]) await one.close();
});

for (const bucket of ["gated", "gatedByFile"]) {
  const file = `/api/storage/${bucket}/a`;
  const ways: Record<string, () => Promise<{ status: number }>> = {
    "a download": () => ann.fetch(file),
    "its metadata": () => ann.get(`${file}/metadata`),
    "a change of its metadata": () => ann.patch(`${file}/metadata`, { by: "ann" }),
    "a deletion": () => ann.delete(file),
  };
  for (const [way, request] of Object.entries(ways)) {
    test(`[ST215] ${way} in ${bucket}, whose rule is awaited, by the records of now`, async () => {
      await upload(platform.service, bucket, "a", "x");
      await platform.post("/api/functions/gate", { isOpen: false });
      const timesAsked = () => platform.stderr().split("asked: true").length;
      const before = timesAsked();
      const asked = request();
      await until("the rule has been asked", () => timesAsked() > before);
      expect((await platform.service.delete(`${members}/${ann.id}`)).status).toBe(200);
      await platform.post("/api/functions/gate", { isOpen: true });
      expect((await asked).status).toBe(403);
      expect((await platform.service.get(`${file}/metadata`)).body).toMatchObject({ key: "a", customMetadata: {} });
      expect((await platform.service.post(members, { id: ann.id })).status).toBe(201);
      expect((await request()).status).toBe(200);
    });
  }
}
