import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { createHttpClient, type HttpClient } from "../../support/http-client.ts";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { begun, postInTwo } from "../../support/split-request.ts";
import { upload } from "./storage-support.ts";

const KEY = "storage-upload-key-0123456789abcdefghijklmn";
const configWith = (serviceKeys: string) => `{
  storage: { buckets: { files: { access: {
    read: true,
    write: (auth, file) => auth?.role === "editor" || file.key.startsWith("all/"),
  } } } },
  serviceKeys: { ${serviceKeys} },
}`;
const UPLOADER = `uploader: { key: "${KEY}", scopes: ["storage:bucket:files:write"] }`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: configWith(UPLOADER) });
});
afterAll(() => platform.stop());

async function sign(client: HttpClient, key: string): Promise<string> {
  const answer = await client.post<{ url: string }>("/api/storage/files/signed-upload-url", { key });
  expect(answer.status).toBe(200);
  const { pathname, search } = new URL(answer.body.url);
  return pathname + search;
}
const put = async (url: string): Promise<number> => (await platform.fetch(url, { method: "PUT", body: "x" })).status;
const change = (id: string, changes: { disabled?: boolean; role?: string }) =>
  platform.service.patch(`/api/auth/admin/users/${id}`, changes);

test("[ST107] an upload URL of a user who is disabled or deleted is refused", async () => {
  const ann = await signIn(platform, { role: "editor" });
  const [first, second] = [await sign(ann, "a"), await sign(ann, "b")];
  expect((await change(ann.id, { disabled: true })).status).toBe(200);
  expect(await put(first)).toBe(401);
  expect((await change(ann.id, { disabled: false })).status).toBe(200);
  expect(await put(first)).toBe(200);
  expect((await platform.service.delete(`/api/auth/admin/users/${ann.id}`)).status).toBe(200);
  expect(await put(second)).toBe(401);
});

test("[ST107] the write rule sees the present role of the user", async () => {
  const bob = await signIn(platform, { role: "editor" });
  const [first, second] = [await sign(bob, "a"), await sign(bob, "all/b")];
  expect((await change(bob.id, { role: "user" })).status).toBe(200);
  expect(await put(first)).toBe(403);
  expect(await put(second)).toBe(200);
});

test.each([
  ["disabled", { disabled: true }],
  ["given another role", { role: "admin" }],
])("[ST107] nothing is stored by an upload URL of a user who is %s while its body arrives", async (_, changes) => {
  const ann = await signIn(platform, { role: "editor" });
  const url = await sign(ann, "all/slow");
  const arriving = postInTwo(platform.url + url, { method: "PUT", headers: {}, begin: "a", restBytes: 1 });
  await begun(arriving, platform);
  expect((await change(ann.id, changes)).status).toBe(200);
  expect(await arriving.end("b")).toBe(401);
  expect((await platform.fetch("/api/storage/files/all/slow")).status).toBe(404);
  expect((await change(ann.id, { disabled: false })).status).toBe(200);
  // The URL was not used up.
  expect(await put(url)).toBe(200);
  await platform.service.delete("/api/storage/files/all/slow");
});

test("[AL1] an upload to a signed URL is one of the key, or of who acts as the user, that asked for it", async () => {
  const ann = await signIn(platform);
  const acting = createHttpClient(() => platform.url, {
    "x-platform-service-key": platform.serviceKey,
    "x-platform-act-as": ann.id,
  });
  const actorsOf = async (client: HttpClient, key: string): Promise<JsonValue[]> => {
    expect(await put(await sign(client, key))).toBe(200);
    const path = `/api/admin/audit?action=file.upload&target=storage/files/${key}`;
    const { body } = await platform.service.get<{ entries: { actor: JsonValue }[] }>(path);
    return body.entries.map(({ actor }) => actor);
  };
  expect(await actorsOf(platform.withKey(KEY), "of-key")).toEqual([{ kind: "serviceKey", name: "uploader" }]);
  expect(await actorsOf(acting, "all/acted")).toEqual([{ kind: "serviceKey", name: "root", as: ann.id }]);
  expect(await actorsOf(ann, "all/own")).toEqual([]);
});

test("[ST50] a download URL of a user with the longest id opens its file", async () => {
  const user = { id: "語".repeat(256), email: "long@example.com", password: "correct horse battery", verified: true };
  expect((await platform.service.post("/api/admin/auth/users/import", { users: [user] })).status).toBe(200);
  const { email, password } = user;
  const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", { email, password });
  expect((await upload(platform.service, "files", "all/long", "x")).status).toBe(201);
  const ask = { key: "all/long" };
  const signed = await platform.as(body.accessToken).post<{ url: string }>("/api/storage/files/signed-url", ask);
  const { pathname, search } = new URL(signed.body.url);
  expect((await platform.fetch(pathname + search)).status).toBe(200);
});

test("[ST107] an upload URL of a service key is refused when the key is gone, or has other scopes", async () => {
  const client = platform.withKey(KEY);
  const urls = [await sign(client, "a"), await sign(client, "b"), await sign(client, "c")];
  expect(await put(urls[0] ?? "")).toBe(200);
  await platform.restart({ config: configWith(UPLOADER.replace(":write", ":read")) });
  expect(await put(urls[1] ?? "")).toBe(403);
  await platform.restart({ config: configWith("") });
  expect(await put(urls[1] ?? "")).toBe(401);
  await platform.restart({ config: configWith(UPLOADER) });
  expect(await put(urls[2] ?? "")).toBe(200);
}, 60_000);
