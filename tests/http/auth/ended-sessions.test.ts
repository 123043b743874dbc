import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { createAdministrator, SERVICE_KEY, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { begun as hasBegun, postInTwo, type SplitRequest } from "../../support/split-request.ts";
import { type Enrolment, steadyStep, type Tokens, totpCode } from "./auth-support.ts";

const NEW_PASSWORD = "a new password";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      auth: { mfa: { totp: true } },
      databases: { shared: { tables: {
        notes: { access: { insert: (auth) => auth !== null } },
        docs: { schema: { file: { type: "file", bucket: "files" } }, access: { insert: (auth) => auth !== null } },
      } } },
      storage: { buckets: { files: { access: { write: (auth) => auth !== null } } } },
      routes: (api) => api
        .post("/called", ({ auth, body }) => ({ id: auth.id, given: body !== undefined }))
        .post("/read/:as", async ({ request, params }) => ({ given: (await request[params.as]()) !== undefined }))
        .post("/open", ({ body }) => ({ given: body !== undefined }), { access: true })
        .post("/stream", async ({ request }) => {
          let size = 0;
          for await (const chunk of request.body) size += chunk.byteLength;
          return { size };
        }),
    }`,
  });
});
afterAll(() => platform.stop());

const tokenOf = (token: string) => ({ authorization: `Bearer ${token}` });

/** Begun, with credentials that are good; the body's end is sent when the test says so. */
async function begun(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<Arriving> {
  // The server knows the caller by now: it need not wait for a signature when the request comes.
  await platform.get("/api/db/shared/tables/notes", { headers });
  const request = postInTwo(platform.url + path, { headers, begin: body.slice(0, 1), restBytes: body.length - 1 });
  await hasBegun(request, platform);
  return { end: () => request.end(body.slice(1)) };
}
interface Arriving {
  end(): ReturnType<SplitRequest["end"]>;
}

const ENDS: [name: string, end: (at: string) => Promise<{ status: number }>][] = [
  ["revocation", (at) => platform.service.post(`${at}/revoke`)],
  ["disabling", (at) => platform.service.patch(at, { disabled: true })],
  ["another role", (at) => platform.service.patch(at, { role: "editor" })],
  ["deletion", (at) => platform.service.delete(at)],
];

const NOTE = JSON.stringify({ text: "a note" });
const LARGE_NOTE = JSON.stringify({ text: "x".repeat(100_000) });
const DEVICE = JSON.stringify({ deviceId: "phone", token: "a device token", platform: "android" });
const FORM = [
  "--edge",
  'content-disposition: form-data; name="key"',
  "",
  "a.txt",
  "--edge",
  'content-disposition: form-data; name="file"; filename="a.txt"',
  "",
  "bytes",
  "--edge--",
  "",
].join("\r\n");
const RECORD_FORM = FORM.replace('name="key"', 'name="record"').replace("a.txt\r\n--edge", "{}\r\n--edge");
const LARGE_FORM = FORM.replace("bytes", "x".repeat(100_000));
const OF_FORM = { "content-type": "multipart/form-data; boundary=edge" };
const WAYS: [what: string, path: string, body: string, headers?: Record<string, string>][] = [
  ["a record", "/api/db/shared/tables/notes", NOTE],
  ["a large record", "/api/db/shared/tables/notes", LARGE_NOTE],
  ["a push device", "/api/push/register", DEVICE],
  ["a route", "/api/functions/called", NOTE],
  ["a route with a large body", "/api/functions/called", LARGE_NOTE],
  ["a file", "/api/storage/files/upload", FORM, OF_FORM],
  ["a record with a file", "/api/db/shared/tables/docs", RECORD_FORM, OF_FORM],
  ...["text", "bytes", "arrayBuffer", "blob", "json"].flatMap((as): typeof WAYS => [
    [`a route that reads ${as}()`, `/api/functions/read/${as}`, NOTE],
    [`a route that reads a large ${as}()`, `/api/functions/read/${as}`, LARGE_NOTE],
  ]),
  ["a route that reads formData()", "/api/functions/read/formData", FORM, OF_FORM],
  ["a route that reads a large formData()", "/api/functions/read/formData", LARGE_FORM, OF_FORM],
  ["a route that reads a large stream", "/api/functions/stream", LARGE_NOTE],
];

for (const [what, path, body, headers = {}] of WAYS) {
  test.each(ENDS)(`[HT135] ${what} is 401 when %s comes before the end of its body`, async (_, end) => {
    const user = await signIn(platform);
    const kept = await begun(path, { ...headers, ...tokenOf((await signIn(platform)).token) }, body);
    const request = await begun(path, { ...headers, ...tokenOf(user.token) }, body);
    expect((await end(`/api/auth/admin/users/${user.id}`)).status).toBe(200);
    expect(await request.end()).toBe(401);
    const { tokens } = (await platform.service.get<{ tokens: JsonObject[] }>(`/api/push/tokens?userId=${user.id}`))
      .body;
    expect(tokens).toEqual([]);
    expect([200, 201]).toContain(await kept.end());
  });
}

/** Begun by an administrator who acts as a user, or as nobody. */
async function actsAs(target: string, path: string) {
  const administrator = await createAdministrator(platform, SERVICE_KEY);
  const headers = { cookie: administrator.cookie, "x-platform-admin": "1", "x-platform-act-as": target };
  return { administrator, request: await begun(path, headers, NOTE) };
}

test("[HT135] who acts as nobody by an administrator's session is asked again for it", async () => {
  const [kept, ended] = [
    await actsAs("anonymous", "/api/functions/open"),
    await actsAs("anonymous", "/api/functions/open"),
  ];
  await ended.administrator.delete("/api/admin/session");
  expect(await kept.request.end()).toBe(200);
  expect(await ended.request.end()).toBe(401);
});

test.each(["/api/db/shared/tables/notes", "/api/functions/called", "/api/functions/read/text"])(
  "[HT135] who acts as a user at %s by an administrator's session is asked again for it, and for the user",
  async (path) => {
    const user = await signIn(platform);
    const acts = () => actsAs(user.id, path);
    const [kept, ended] = [await acts(), await acts()];
    await ended.administrator.delete("/api/admin/session");
    expect([200, 201]).toContain(await kept.request.end());
    expect(await ended.request.end()).toBe(401);
    const other = await acts();
    await platform.service.patch(`/api/auth/admin/users/${user.id}`, { role: "editor" });
    expect(await other.request.end()).toBe(401);
    const last = await acts();
    await platform.service.delete(`/api/auth/admin/users/${user.id}`);
    expect(await last.request.end()).toBe(401);
  },
);

test.each(ENDS)("[HT135] a part of an upload is 401 when %s comes before the end of its body", async (_, end) => {
  const user = await signIn(platform);
  const { uploadId } = (
    await user.post<{ uploadId: string }>("/api/storage/files/multipart/create", { key: "parts.bin" })
  ).body;
  const part = (partNumber: number) =>
    begun(
      `/api/storage/files/multipart/upload-part?uploadId=${uploadId}&key=parts.bin&partNumber=${partNumber}`,
      tokenOf(user.token),
      "bytes",
    );
  expect(await (await part(1)).end()).toBe(200);
  const late = await part(2);
  expect((await end(`/api/auth/admin/users/${user.id}`)).status).toBe(200);
  expect(await late.end()).toBe(401);
  const parts = await platform.service.get<{ parts: { partNumber: number }[] }>(
    `/api/storage/files/uploads/${uploadId}/parts?key=parts.bin`,
  );
  if (parts.status === 200) expect(parts.body.parts.map(({ partNumber }) => partNumber)).toEqual([1]);
});

test("[AU103] a token that a new password has ended verifies no factor by a request that began before", async () => {
  await steadyStep();
  const owner = await signIn(platform);
  const { factorId, secret } = (await owner.post<Enrolment>("/api/auth/mfa/totp/enroll")).body;
  const code = JSON.stringify({ factorId, code: totpCode(secret) });
  const thief = await begun("/api/auth/mfa/totp/verify", tokenOf(owner.token), code);
  const passwords = { currentPassword: owner.password, newPassword: NEW_PASSWORD };
  const changed = await owner.post<Tokens>("/api/auth/change-password", passwords);
  expect(changed.status).toBe(200);
  expect(await thief.end()).toBe(401);
  const { body } = await platform.as(changed.body.accessToken).get("/api/auth/mfa/factors");
  expect(body["factors"]).toEqual([expect.objectContaining({ verified: false })]);
});
