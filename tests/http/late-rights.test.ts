import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";
import { postInTwo } from "../support/split-request.ts";
import { upload } from "./storage-support.ts";

// What a rule has looked up may be gone when the body of its request has arrived, which may take hours.

let platform: TestPlatform;
let ann: SignedIn;

const CONFIG = `
  const isMember = (auth, db) => {
    const answer = auth !== null && db("teams").table("members").get(auth.id) !== null;
    console.error("asked: " + answer);
    return answer;
  };
  const plain = (auth, _file, { db }) => isMember(auth, db);
  const later = async (auth, _file, { db }) => isMember(auth, db);
  const route = (auth, { db }) => isMember(auth, db);
  export default {
    databases: { teams: { tables: { members: {} } } },
    storage: { buckets: {
      plain: { access: { read: true, write: plain, delete: plain } },
      later: { access: { read: true, write: later, delete: later } },
    } },
    routes: (api) => api
      .post("/json", ({ body, app }) => app.db("teams").table("members").insert({ id: "by-" + body.text }), { access: route })
      .post("/raw", async ({ request, app }) => app.db("teams").table("members").insert({ id: "by-" + await request.text() }), { access: route, parse: "none" }),
  };`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

const members = "/api/db/teams/tables/members";
beforeEach(async () => {
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
