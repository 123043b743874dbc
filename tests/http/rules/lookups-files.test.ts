import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { upload } from "../storage/storage-support.ts";

let platform: TestPlatform;
let ann: SignedIn;
const MEMBERS = "/api/db/shared/tables/members";

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      const role = (auth, { db }) => (auth === null ? null : (db("shared").table("members").get(auth.id)?.role ?? null));
      export default {
        databases: { shared: { tables: { members: { schema: { role: { type: "string" } } } } } },
        storage: { buckets: { files: { access: {
          read: (auth, _file, context) => role(auth, context) !== null,
          write: (auth, file, context) => role(auth, context) === "editor" || file.key === "drafts",
          delete: async (auth, file, context) => (await role(auth, context)) === "editor",
        } } } },
      };`,
  });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

const become = (role: string | null) =>
  role === null
    ? platform.service.delete(`${MEMBERS}/${ann.id}`)
    : platform.service.post(`${MEMBERS}?upsert=true`, { id: ann.id, role });
const statusOf = async (path: string, client: Pick<SignedIn, "fetch"> = platform) => (await client.fetch(path)).status;

test("[ST200] the rules of buckets look up other records", async () => {
  expect((await upload(ann, "files", "a", "x")).status).toBe(403);
  await become("reader");
  expect((await upload(ann, "files", "a", "x")).status).toBe(403);
  expect((await upload(ann, "files", "drafts", "x")).status).toBe(201);
  await become("editor");
  expect((await upload(ann, "files", "a", "x")).status).toBe(201);
  expect(await statusOf("/api/storage/files/a", ann)).toBe(200);
  expect((await ann.get("/api/storage/files")).status).toBe(200);
  await become(null);
  expect(await statusOf("/api/storage/files/a", ann)).toBe(403);
  expect((await ann.get("/api/storage/files")).status).toBe(403);
  expect((await ann.delete("/api/storage/files/a")).status).toBe(403);
});

test("[ST201] a signed URL ends with the right of the one that asked for it", async () => {
  await become("editor");
  await upload(ann, "files", "plan", "before");
  const one = await ann.post<{ url: string }>("/api/storage/files/signed-url", { key: "plan" });
  const several = await ann.post<{ urls: { url: string }[] }>("/api/storage/files/signed-urls", { keys: ["plan"] });
  const urls = [one.body.url, several.body.urls[0]?.url ?? ""].map((url) => {
    const { pathname, search } = new URL(url);
    return pathname + search;
  });
  for (const url of urls) expect(await statusOf(url)).toBe(200);
  await become(null);
  await upload(platform.service, "files", "plan", "after");
  for (const url of urls) expect(await statusOf(url)).toBe(403);
  await become("reader");
  for (const url of urls) expect(await (await platform.fetch(url)).text()).toBe("after");
  const disable = (disabled: boolean) => platform.service.patch(`/api/auth/admin/users/${ann.id}`, { disabled });
  await disable(true);
  for (const url of urls) expect(await statusOf(url)).toBe(401);
  await disable(false);
  for (const url of urls) expect(await statusOf(url)).toBe(200);
});
