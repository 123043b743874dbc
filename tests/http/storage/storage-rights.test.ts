import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type ErrorAnswer,
  type HttpClient,
  type SignedIn,
  signIn,
  signToken,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";
import { path, type StoredFile, until, upload } from "./storage-support.ts";

const READER = "storage-reader-key-0123456789abcdefghijklmn";
const WRITER = "storage-writer-key-0123456789abcdefghijklmn";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      storage: { buckets: ((signedIn) => ({
        closed: {},
        open: { access: { read: true, write: true, delete: true } },
        users: { access: { read: (auth) => auth !== null, write: (auth) => auth !== null } },
        own: { access: {
          read: (auth, file) => file.uploadedBy === auth?.id || file.customMetadata?.public === "yes",
          write: (auth, file) => file.uploadedBy === undefined || file.uploadedBy === auth?.id,
          delete: (auth, file) => file.uploadedBy === auth?.id,
        } },
        inbox: { access: { read: (auth, file) => file.uploadedBy === auth?.id, write: true } },
        pictures: { maxFileSize: 5000, access: {
          read: true,
          write: async (auth, file) => { await Bun.sleep(5); return file.contentType.startsWith("image/") && file.size <= 100; },
        } },
        wrapped: { access: {
          read: signedIn((auth, file) => file.uploadedBy === auth.id),
          write: signedIn((auth, file) => file?.uploadedBy === undefined || file.uploadedBy === auth.id),
          delete: signedIn((auth, file) => file.uploadedBy === auth.id),
        } },
        optional: { access: {
          read: async (auth, file = null) => { await Bun.sleep(1); return file?.uploadedBy === auth?.id; },
          write: (auth, file = null) => auth !== null && (file?.uploadedBy === undefined || file.uploadedBy === auth.id),
          delete: function (auth) { return arguments[1]?.uploadedBy === auth?.id; },
        } },
        lazy: { access: {
          read: (auth, file = null) => { if (auth?.role === "user") return true; return file.uploadedBy === null; },
          write: (auth, ...rest) => { if (rest[0].contentType !== "image/png") throw new Error("no"); return true; },
        } },
        slow: { access: { read: async (auth, file) => { await Bun.sleep(1500); return file.size > 0; }, write: true } },
        odd: { access: { read: () => "yes", write: () => { throw new Error("no"); }, delete: (auth, file) => [] } },
      }))((rule) => (...args) => args[0] !== null && rule(...args)) },
      serviceKeys: {
        reader: { key: "${READER}", scopes: ["storage:bucket:closed:read"] },
        writer: { key: "${WRITER}", scopes: ["storage:bucket:closed:write"] },
      },
    }`,
  });
  ann = await signIn(platform);
  bob = await signIn(platform);
});
afterAll(() => platform.stop());

const download = async (client: HttpClient, bucket: string, key: string) =>
  (await client.fetch(path(bucket, key))).status;
const relative = (url: string): string => url.slice(new URL(url).origin.length);
const sign = async (client: HttpClient, bucket: string, key: string, expiresIn?: number) =>
  client.post<{ url: string }>(`/api/storage/${bucket}/signed-url`, {
    key,
    ...(expiresIn === undefined ? {} : { expiresIn }),
  });
const signUpload = async (client: HttpClient, bucket: string, key: string) =>
  relative((await client.post<{ url: string }>(`/api/storage/${bucket}/signed-upload-url`, { key })).body.url);
const put = async (url: string, content: string, type = "image/png") => {
  const answer = await platform.fetch(url, { method: "PUT", body: content, headers: { "content-type": type } });
  return { status: answer.status, body: (await answer.json()) as StoredFile & ErrorAnswer };
};

test("[ST40] without credentials: only what the read rule allows", async () => {
  await upload(platform.service, "open", "a", "x");
  await upload(platform.service, "own", "hidden", "x");
  await upload(platform.service, "own", "shown", "x", { metadata: '{"public":"yes"}' });
  expect(await download(platform, "open", "a")).toBe(200);
  expect(await download(platform, "open", "missing")).toBe(404);
  expect(await download(platform, "own", "shown")).toBe(200);
  expect(await download(platform, "own", "hidden")).toBe(401);
  expect(await download(platform, "own", "missing")).toBe(401);
  expect(await download(platform, "users", "missing")).toBe(401);
  expect(await download(platform, "none", "a")).toBe(404);
  expect((await platform.head(path("open", "a"))).status).toBe(200);
  const calls: [string, string, unknown?][] = [
    ["GET", "/api/storage/open"],
    ["GET", "/api/storage/open/a/metadata"],
    ["GET", "/api/storage/open/uploads/1/parts?key=a"],
    ["PATCH", "/api/storage/open/a/metadata", {}],
    ["DELETE", "/api/storage/open/a"],
    ["PUT", "/api/storage/open/a", {}],
    ...["upload", "delete-batch", "signed-url", "signed-urls", "signed-upload-url"].map(
      (name): [string, string, unknown] => ["POST", `/api/storage/open/${name}`, {}],
    ),
    ...["create", "upload-part", "complete", "abort"].map((name): [string, string, unknown] => [
      "POST",
      `/api/storage/open/multipart/${name}`,
      {},
    ]),
  ];
  for (const [method, url, body] of calls) {
    const answer = await platform.fetch(url, { method, body: body === undefined ? null : JSON.stringify(body) });
    const error = (await answer.json()) as ErrorAnswer;
    expect([method, url, answer.status, error.message]).toEqual([method, url, 401, "Authentication required"]);
  }
});

test("[ST40] invalid credentials are refused where anybody may read", async () => {
  const forged = await signToken({ sub: ann.id, sid: "x" }, { secret: "another-secret-0123456789-another-secret" });
  const expired = await signToken({ sub: ann.id, sid: "x" }, { expiresInSeconds: -5 });
  expect(await download(platform.as(forged), "open", "a")).toBe(401);
  expect(await download(platform.as(expired), "open", "a")).toBe(401);
  expect(await download(platform.withKey("wrong"), "open", "a")).toBe(401);
  expect((await ann.get("/api/storage/none")).status).toBe(404);
  expect((await upload(ann, "constructor", "a", "x")).status).toBe(404);
});

test("[ST41] a missing rule, a false one, one that throws and other answers deny", async () => {
  expect((await upload(ann, "closed", "a", "x")).status).toBe(403);
  expect((await ann.get("/api/storage/closed")).status).toBe(403);
  expect((await ann.delete(path("closed", "a"))).status).toBe(403);
  await upload(platform.service, "odd", "a", "x");
  expect(await download(ann, "odd", "a")).toBe(403);
  expect((await upload(ann, "odd", "b", "x")).status).toBe(403);
  expect((await ann.delete(path("odd", "a"))).status).toBe(403);
  expect((await ann.patch(`${path("odd", "a")}/metadata`, {})).status).toBe(403);
  for (const call of ["create", "upload-part?uploadId=1&partNumber=1&key=a", "complete", "abort"]) {
    expect([call, (await ann.post(`/api/storage/closed/multipart/${call}`, {})).status]).toEqual([call, 403]);
  }
  expect((await ann.get("/api/storage/closed/uploads/1/parts?key=a")).status).toBe(403);
  expect((await sign(ann, "closed", "a")).status).toBe(403);
  expect((await ann.post("/api/storage/closed/signed-upload-url", { key: "a" })).status).toBe(403);
  expect((await ann.post("/api/storage/closed/signed-urls", { keys: [] })).status).toBe(403);
});

test("[ST41] the write rule sees the file that was uploaded, not what the form claims first", async () => {
  expect((await upload(ann, "pictures", "a", "x", { type: "image/png" })).status).toBe(201);
  expect((await upload(ann, "pictures", "a", "x", { type: "text/plain" })).status).toBe(403);
  expect((await upload(ann, "pictures", "a", "x".repeat(101), { type: "image/png" })).status).toBe(403);
  expect(await (await platform.fetch(path("pictures", "a"))).text()).toBe("x");
});

test("[ST31] who may delete nothing does not learn by a batch which files are there", async () => {
  await upload(platform.service, "closed", "there", "x");
  const keys = ["there", "missing"];
  const answer = await ann.post<{ failed: { key: string; error: string }[] }>("/api/storage/closed/delete-batch", {
    keys,
  });
  const [there, missing] = answer.body.failed;
  expect(answer.body.failed.map(({ key }) => key)).toEqual(keys);
  expect(there?.error).toBe(missing?.error ?? "");
});

test("[ST42] rules can keep users from overwriting, changing and deleting the files of others", async () => {
  expect((await upload(ann, "own", "ann", "hers")).status).toBe(201);
  expect((await upload(bob, "own", "ann", "his")).status).toBe(403);
  expect((await bob.patch(`${path("own", "ann")}/metadata`, { public: "yes" })).status).toBe(403);
  expect((await bob.delete(path("own", "ann"))).status).toBe(403);
  expect(await download(bob, "own", "ann")).toBe(403);
  expect((await bob.get(`${path("own", "ann")}/metadata`)).status).toBe(403);
  expect((await bob.post("/api/storage/own/multipart/create", { key: "ann" })).status).toBe(403);
  expect((await bob.post("/api/storage/own/signed-upload-url", { key: "ann" })).status).toBe(403);
  const batch = await bob.post("/api/storage/own/delete-batch", { keys: ["ann"] });
  expect(batch).toMatchObject({ status: 200, body: { deleted: [], failed: [{ key: "ann", error: "Access denied" }] } });
  expect((await upload(ann, "own", "ann", "again")).status).toBe(201);
  expect(await (await ann.fetch(path("own", "ann"))).text()).toBe("again");
});

test("[ST48] a rule that reads the file without naming it as a parameter is asked about the file", async () => {
  for (const bucket of ["wrapped", "optional"]) {
    expect((await upload(ann, bucket, "ann", "hers")).status).toBe(201);
    expect((await upload(bob, bucket, "bob", "his")).status).toBe(201);
    expect((await upload(bob, bucket, "ann", "his")).status).toBe(403);
    expect((await bob.patch(`${path(bucket, "ann")}/metadata`, { mine: "yes" })).status).toBe(403);
    expect((await bob.delete(path(bucket, "ann"))).status).toBe(403);
    expect(await download(bob, bucket, "ann")).toBe(403);
    expect(await download(platform, bucket, "ann")).toBe(401);
    expect(await download(platform, bucket, "missing")).toBe(401);
    expect((await bob.head(path(bucket, "ann"))).status).toBe(403);
    expect((await bob.get(`${path(bucket, "ann")}/metadata`)).status).toBe(403);
    expect((await sign(bob, bucket, "ann")).status).toBe(403);
    expect((await bob.post(`/api/storage/${bucket}/signed-urls`, { keys: ["ann"] })).status).toBe(403);
    expect((await bob.post(`/api/storage/${bucket}/signed-upload-url`, { key: "ann" })).status).toBe(403);
    expect((await bob.post(`/api/storage/${bucket}/multipart/create`, { key: "ann" })).status).toBe(403);
    const batch = await bob.post(`/api/storage/${bucket}/delete-batch`, { keys: ["ann", "bob"] });
    const failed = [{ key: "ann", error: "Access denied" }];
    expect(batch).toMatchObject({ status: 200, body: { deleted: ["bob"], failed } });
    const list = await ann.get<{ objects: { key: string }[] }>(`/api/storage/${bucket}`);
    expect(list.body.objects.map(({ key }) => key)).toEqual(["ann"]);
    expect((await bob.get<{ objects: unknown[] }>(`/api/storage/${bucket}`)).body.objects).toEqual([]);
    expect(await (await ann.fetch(path(bucket, "ann"))).text()).toBe("hers");
  }
});

test("[ST48] a signed upload URL and a multipart upload are refused when somebody takes the key meanwhile", async () => {
  const url = await signUpload(bob, "optional", "race");
  const base = "/api/storage/optional/multipart";
  const { uploadId } = (await bob.post<{ uploadId: string }>(`${base}/create`, { key: "race" })).body;
  expect((await upload(ann, "optional", "race", "hers")).status).toBe(201);
  expect((await put(url, "his")).status).toBe(403);
  const query = new URLSearchParams({ uploadId, key: "race", partNumber: "1" });
  expect((await bob.fetch(`${base}/upload-part?${query}`, { method: "POST", body: "his" })).status).toBe(403);
  expect((await bob.post(`${base}/complete`, { uploadId, key: "race", parts: [] })).status).toBe(400);
  expect(await (await ann.fetch(path("optional", "race"))).text()).toBe("hers");
});

test("[ST48] a rule that reads the file for some callers only, or throws after it has read it", async () => {
  await upload(platform.service, "lazy", "server", "x", { type: "image/png" });
  expect((await upload(ann, "lazy", "ann", "x", { type: "image/png" })).status).toBe(201);
  expect((await upload(ann, "lazy", "text", "x", { type: "text/plain" })).status).toBe(403);
  expect([await download(bob, "lazy", "ann"), await download(bob, "lazy", "missing")]).toEqual([200, 404]);
  expect([await download(platform, "lazy", "server"), await download(platform, "lazy", "ann")]).toEqual([200, 401]);
  expect(await download(platform, "lazy", "missing")).toBe(401);
});

test("[ST43] a list has the files that the caller may read, page by page", async () => {
  for (let index = 0; index < 12; index++) await upload(index % 3 === 0 ? ann : bob, "own", `list/${10 + index}`, "x");
  type Page = { objects: { key: string }[]; truncated: boolean; cursor: string | null };
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const query: Record<string, string | number> = {
      prefix: "list/",
      limit: 3,
      ...(cursor === null ? {} : { cursor }),
    };
    const page: Page = (await ann.get<Page>("/api/storage/own", { query })).body;
    seen.push(...page.objects.map(({ key }) => key));
    cursor = page.cursor;
  } while (cursor !== null && seen.length < 20);
  expect(seen).toEqual(["list/10", "list/13", "list/16", "list/19"]);
});

test("[ST44] a service key acts within its scopes", async () => {
  const reader = platform.withKey(READER);
  const writer = platform.withKey(WRITER);
  expect((await upload(writer, "closed", "scoped", "x")).status).toBe(201);
  expect((await upload(reader, "closed", "scoped", "x")).status).toBe(403);
  expect((await reader.head(path("closed", "scoped"))).status).toBe(200);
  expect((await writer.head(path("closed", "scoped"))).status).toBe(403);
  expect((await reader.post("/api/storage/closed/signed-urls", { keys: ["scoped"] })).status).toBe(200);
  expect((await writer.post("/api/storage/closed/signed-urls", { keys: ["scoped"] })).status).toBe(403);
  expect((await reader.get("/api/storage/open")).status).toBe(403);
  expect((await writer.delete(path("closed", "scoped"))).status).toBe(403);
  expect((await writer.post("/api/storage/closed/delete-batch", { keys: ["scoped"] })).status).toBe(403);
});

test("[ST45] of many first uploads to one key in a bucket of owners, one wins and the others are denied", async () => {
  const people = [ann, bob];
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => upload(people[index % 2] ?? ann, "own", "race", `${index % 2}`)),
  );
  const winner = await ann.fetch(path("own", "race"));
  const [won, lost] = winner.status === 200 ? [0, 1] : [1, 0];
  for (const [index, { status }] of answers.entries())
    expect([index, status]).toEqual([index, index % 2 === won ? 201 : 403]);
  expect(await (await (people[won] ?? ann).fetch(path("own", "race"))).text()).toBe(`${won}`);
  expect(lost).not.toBe(won);
});

test("[ST5] a file that is replaced or deleted while a slow rule is asked about it", async () => {
  for (const key of ["replaced", "deleted"]) await upload(ann, "slow", key, "old");
  const reads = ["replaced", "deleted"].map((key) => ann.fetch(path("slow", key)));
  await upload(ann, "slow", "replaced", "new");
  await platform.service.delete(path("slow", "deleted"));
  const [replaced, deleted] = await Promise.all(reads);
  expect([replaced?.status, await replaced?.text(), deleted?.status]).toEqual([200, "new", 404]);
});

test("[ST50] a signed URL opens its file, and nothing else", async () => {
  await upload(ann, "own", "dir/signed file", "secret");
  await upload(ann, "own", "other", "secret");
  const { url } = (await sign(ann, "own", "dir/signed file", 100)).body;
  expect(url.startsWith(`${platform.url}/api/storage/own/dir/signed%20file?token=`)).toBe(true);
  const signed = relative(url);
  const token = new URL(url).searchParams.get("token") ?? "";
  expect(await (await platform.fetch(signed)).text()).toBe("secret");
  expect((await platform.head(signed)).status).toBe(200);
  const ranged = await platform.fetch(signed, { headers: { range: "bytes=0-1" } });
  expect([ranged.status, await ranged.text()]).toEqual([206, "se"]);
  await upload(platform.service, "closed", "dir/signed file", "x");
  const [expiry = "", grant = "", mac = ""] = token.split(".");
  // The first character: the last one has bits that no byte holds, so that two of them may mean the same.
  const otherMac = (mac.startsWith("A") ? "B" : "A") + mac.slice(1);
  const attacks = [
    `/api/storage/own/other?token=${token}`,
    `/api/storage/closed/dir/signed%20file?token=${token}`,
    `${path("own", "dir/signed file")}?token=${Number(expiry) + 1}.${grant}.${mac}`,
    `${path("own", "dir/signed file")}?token=${expiry}..${otherMac}`,
    `${path("own", "dir/signed file")}?token=${expiry}.00000000-0000-0000-0000-000000000000.${mac}`,
    `${path("own", "dir/signed file")}?token=`,
    `${path("own", "dir/signed file")}?token=${ann.token}`,
  ];
  for (const attack of attacks) expect([attack, (await platform.fetch(attack)).status]).toEqual([attack, 401]);
  expect((await platform.fetch(signed, { method: "DELETE" })).status).toBe(401);
  expect((await platform.fetch(signed, { method: "PUT", body: "x" })).status).toBe(401);
  expect((await platform.get(signed.replace("?", "/metadata?"))).status).toBe(401);
});

test("[ST50] a signed URL ends when it expires", async () => {
  await upload(ann, "own", "brief", "x");
  // Expiry is in whole seconds: one second may end at once.
  const signed = relative((await sign(ann, "own", "brief", 2)).body.url);
  expect((await platform.fetch(signed)).status).toBe(200);
  await until("the URL has expired", async () => (await platform.fetch(signed)).status !== 200);
  expect(await platform.get<ErrorAnswer>(signed)).toMatchObject({ status: 401, body: { message: "Token expired" } });
});

test("[ST51] signing of missing and denied files, and its bounds", async () => {
  expect((await sign(ann, "own", "never")).status).toBe(404);
  expect((await sign(bob, "own", "dir/signed file")).status).toBe(403);
  for (const expiresIn of [0, -1, 1.5, 604_801]) expect((await sign(ann, "own", "other", expiresIn)).status).toBe(400);
  expect((await sign(ann, "own", "other", 604_800)).status).toBe(200);
  const many = (client: HttpClient, keys: unknown, expiresIn?: string) =>
    client.post<{ urls: { key: string; url: string; expiresAt: string }[] }>("/api/storage/own/signed-urls", {
      keys,
      ...(expiresIn === undefined ? {} : { expiresIn }),
    } as never);
  const answer = await many(ann, ["other", "never", "dir/signed file"], "30m");
  expect(answer.body.urls.map(({ key }) => key)).toEqual(["other", "dir/signed file"]);
  for (const { url, expiresAt } of answer.body.urls) {
    expect((await platform.fetch(relative(url))).status).toBe(200);
    expect(Math.abs(Date.parse(expiresAt) - Date.now() - 1_800_000)).toBeLessThan(10_000);
  }
  await upload(bob, "own", "bobs", "x");
  expect((await many(ann, ["other", "bobs"])).status).toBe(403);
  for (const expiresIn of ["8d", "0s", "x", "-1h"]) expect((await many(ann, ["other"], expiresIn)).status).toBe(400);
  expect(
    (
      await many(
        ann,
        Array.from({ length: 101 }, () => "other"),
      )
    ).status,
  ).toBe(400);
  expect((await many(ann, undefined)).status).toBe(400);
});

test("[ST52] a signed upload URL is good for one file", async () => {
  const url = await signUpload(ann, "own", "by-url");
  const stored = await put(url, "bytes", "text/x-a");
  expect(stored).toMatchObject({
    status: 200,
    body: { key: "by-url", size: 5, httpMetadata: { contentType: "text/x-a" } },
  });
  expect((await put(url, "again")).status).toBe(401);
  expect(await (await ann.fetch(path("own", "by-url"))).text()).toBe("bytes");
  expect(await download(bob, "own", "by-url")).toBe(403);
  const other = await signUpload(ann, "own", "by-url");
  expect((await put(other.replace("by-url", "elsewhere"), "x")).status).toBe(401);
  expect((await platform.fetch(other)).status).toBe(401);
  const both = await Promise.all([put(other, "first"), put(other, "second")]);
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 401]);
});

test("[ST53] a signed upload URL for one type takes that type only", async () => {
  const to = "/api/storage/pictures/signed-upload-url";
  expect((await ann.post(to, { key: "typed", contentType: "text/plain" })).status).toBe(403);
  for (const contentType of ["no type", 5, {}]) {
    expect((await ann.post(to, { key: "typed", contentType })).status).toBe(400);
  }
  const answer = await ann.post<{ url: string }>(to, { key: "typed", contentType: "image/png" });
  expect(answer.status).toBe(200);
  const url = relative(answer.body.url);
  for (const type of ["image/gif", "text/html", ""]) expect((await put(url, "x", type)).status).toBe(400);
  const [token = "", sealed = ""] = [url.slice(0, url.lastIndexOf(".")), url.slice(url.lastIndexOf(".") + 1)];
  expect(Buffer.from(sealed, "base64url").toString()).toBe("image/png");
  const gif = Buffer.from("image/gif").toString("base64url");
  for (const forged of [token, `${token}.${gif}`]) {
    expect([forged, (await put(forged, "x", "image/gif")).status]).toEqual([forged, 401]);
  }
  expect(await put(url, "x", "image/png")).toMatchObject({
    ...{ status: 200, body: { httpMetadata: { contentType: "image/png" } } },
  });
});

test("[ST52] the rule is asked about the uploaded file, and a refusal does not use the URL up", async () => {
  await upload(platform.service, "pictures", "old", "x", { type: "image/png" });
  const denied = await ann.post("/api/storage/pictures/signed-upload-url", { key: "new" });
  expect(denied.status).toBe(403); // no content type yet: this bucket's rule wants a picture
  const url = relative(
    (await platform.service.post<{ url: string }>("/api/storage/pictures/signed-upload-url", { key: "new" })).body.url,
  );
  expect((await put(url, "x".repeat(5001))).status).toBe(413);
  expect((await put(url, "x".repeat(5000))).status).toBe(200);
  const owned = await signUpload(ann, "own", "contested");
  await upload(bob, "own", "contested", "his");
  expect((await put(owned, "hers")).status).toBe(403);
});

test("[ST333] who may write a file and not read it learns from a change of metadata what it has sent", async () => {
  const hidden = { secret: "of ann", filler: "x".repeat(100) };
  await upload(ann, "inbox", "hers", "12345", { type: "text/x-secret", metadata: JSON.stringify(hidden) });
  await upload(platform.service, "closed", "hers", "12345", { metadata: JSON.stringify(hidden) });
  const metadata = (bucket: string) => `${path(bucket, "hers")}/metadata`;
  const others: [HttpClient, string][] = [
    [bob, "inbox"],
    [platform.withKey(WRITER), "closed"],
  ];
  for (const [caller, bucket] of others) {
    const answers = [
      await caller.patch(metadata(bucket), {}),
      await caller.patch(metadata(bucket), { mine: "yes", secret: "new" }),
      await caller.patch(metadata(bucket), { mine: null, nothing: null }),
    ];
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, { key: "hers", customMetadata: {} }],
      [200, { key: "hers", customMetadata: { mine: "yes", secret: "new" } }],
      [200, { key: "hers", customMetadata: {} }],
    ]);
    // Nor how much there is.
    const large = await caller.patch<ErrorAnswer>(metadata(bucket), { large: "y".repeat(16_300) });
    expect([large.status, large.body.message]).toEqual([
      413,
      "metadata must be at most 16384 bytes of JSON, with those that are there",
    ]);
  }
  const own = await ann.patch<StoredFile>(metadata("inbox"), {});
  expect(own.body).toMatchObject({ size: 5, customMetadata: { secret: "new", filler: hidden.filler } });
});
