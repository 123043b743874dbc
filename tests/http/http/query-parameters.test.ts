import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { sendRaw } from "../storage/storage-support.ts";

interface Operation {
  requestBody?: { content: Record<string, unknown> };
  parameters: { name: string; in: string; required?: boolean; schema: { type?: string } }[];
  security: Record<string, unknown>[];
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
}

const CONFIG = `{
  databases: {
    shared: { tables: { notes: { schema: { title: { type: "string" } }, fts: ["title"], access: { read: true, insert: true, update: true, delete: true } } } },
    team: { instance: true, access: { create: true, open: true }, tables: { notes: { schema: { title: { type: "string" } }, fts: ["title"], access: { read: true, insert: true, update: true, delete: true } } } },
  },
  auth: {
    anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true },
    oauth: { github: { clientId: "id", clientSecret: "secret" } },
    passkeys: { rpName: "Test", rpId: "localhost", origin: "http://localhost" },
  },
  storage: { buckets: { files: { access: { read: true, write: true, delete: true } } } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { items: { dimensions: 2 } },
  rooms: { game: { access: { join: true } } },
  api: { schemaEndpoint: true },
}`;
const NAMES: Record<string, string> = { namespace: "shared", instance: "red", table: "notes", bucket: "files" };
const OTHER_NAMES: Record<string, string> = { database: "main", index: "items", provider: "github" };
const METHODS = new Set(["get", "post", "put", "patch", "delete", "head"]);

let platform: TestPlatform;
let user: SignedIn;
let document: Document;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
  document = (await platform.get<Document>("/swagger/json")).body;
});
afterAll(() => platform.stop());

function operations(): { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([pattern, methods]) => {
    const namespace = pattern.startsWith("/api/kv") ? "cache" : pattern.includes("{instance}") ? "team" : "shared";
    const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) =>
      name === "namespace" ? namespace : (NAMES[name] ?? OTHER_NAMES[name] ?? "one"),
    );
    return Object.entries(methods)
      .filter(([method]) => METHODS.has(method))
      .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation }));
  });
}

const takesAny = ({ parameters }: Operation) => parameters.some((one) => one.in === "query" && one.name === "others");
/** A link opens some endpoints of administrators to everybody, but no user has a right to them. */
const clientFor = (path: string, { security }: Operation) =>
  security.some((one) => "bearer" in one) && !path.startsWith("/api/admin/") ? user : platform.service;

test("[HT110] every endpoint of the document refuses a query parameter that it does not name, with the right to be there", async () => {
  const accepted: string[] = [];
  for (const { path, method, operation } of operations()) {
    if (takesAny(operation)) continue;
    // The token of a signed URL is a right.
    const token = operation.parameters.some(({ name, required }) => name === "token" && required === true)
      ? "token=x&"
      : "";
    const answer = await clientFor(path, operation).fetch(`${path}?${token}surprise=1`, { method });
    const { status } = answer;
    if (method === "HEAD") {
      if (status !== 400) accepted.push(`${method} ${path}: ${status}`);
      continue;
    }
    const text = await answer.text();
    if (status !== 400 || !text.includes(`"surprise":{"code":"unknown_field"`)) {
      accepted.push(`${method} ${path}: ${status} ${text.slice(0, 200)}`);
    }
  }
  expect(accepted).toEqual([]);
  expect(operations().length).toBeGreaterThan(80);
});

test("[HT110] every parameter that the document names is accepted by the endpoint", async () => {
  const refused: string[] = [];
  for (const { path, method, operation } of operations()) {
    for (const { name } of operation.parameters.filter((one) => one.in === "query" && one.name !== "others")) {
      const answer = await clientFor(path, operation).fetch(`${path}?${name}=1`, { method });
      if ((await answer.text()).includes("is not a query parameter")) refused.push(`${method} ${path}?${name}`);
    }
  }
  expect(refused).toEqual([]);
});

test("[HT140] every endpoint refuses each of its parameters when it is sent twice, and names it", async () => {
  const accepted: string[] = [];
  let tried = 0;
  for (const { path, method, operation } of operations()) {
    if (takesAny(operation) || method === "HEAD") continue;
    const parameters = operation.parameters.filter((one) => one.in === "query");
    for (const { name } of parameters) {
      // Credentials in a link, which are checked first.
      if (name === "token" || name === "ticket") continue;
      const token = parameters.some((one) => one.name === "token" && one.required === true);
      const value = name === "upsert" ? "true" : "1";
      const query = `${token ? "token=x&" : ""}${name}=${value}&${name}=${value}`;
      const answer = await clientFor(path, operation).fetch(`${path}?${query}`, { method });
      const text = await answer.text();
      tried++;
      if (answer.status !== 400 || !text.includes(`"${name}":{"code":"invalid_value","message":"${name} is a query`)) {
        accepted.push(`${method} ${path}?${query}: ${answer.status} ${text.slice(0, 200)}`);
      }
    }
  }
  expect(accepted).toEqual([]);
  expect(tried).toBeGreaterThan(60);
});

test("[HT140] a condition that is sent twice deletes nothing and counts nothing", async () => {
  const notes = "/api/db/shared/tables/notes";
  const { body } = await platform.service.post<{ id: string }>(notes, { title: "one" });
  const [yes, no] = ["one", "two"].map((title) => encodeURIComponent(JSON.stringify([["title", "==", title]])));
  const refused = await platform.service.fetch(`${notes}/${body.id}?if=${yes}&if=${no}`, { method: "DELETE" });
  expect(refused.status).toBe(400);
  expect((await platform.get(`${notes}/${body.id}`)).status).toBe(200);
  expect((await platform.get(`${notes}/count?filter=${yes}&filter=${no}`)).status).toBe(400);
});

test("[HT140] a query is decoded as URLSearchParams does", async () => {
  const notes = "/api/db/shared/tables/notes";
  for (const title of ["a b", "ä+b&c=d", "%", "%zz", "日本", "100 %"]) {
    await platform.service.post(notes, { title });
    const filter = JSON.stringify([["title", "==", title]]);
    const forms = [encodeURIComponent(filter), encodeURIComponent(filter).replaceAll("%20", "+")];
    for (const form of forms) {
      expect([title, (await platform.get<{ total: number }>(`${notes}/count?filter=${form}`)).body.total]).toEqual([
        title,
        1,
      ]);
    }
  }
  // Not valid as a percent-encoding: taken as it is.
  expect((await platform.get(`${notes}/count?filter=%zz`)).status).toBe(400);
  expect((await platform.get(`${notes}/count?&&filter=[]&`)).status).toBe(200);
  expect((await platform.get(`${notes}/count?fil%74er=[]&filter=[]`)).status).toBe(400);
});

test("[HT110] credentials and rights are checked before unknown parameters", async () => {
  const users = "/api/auth/admin/users?surprise=1";
  expect((await platform.get(users)).status).toBe(401);
  expect((await platform.get("/api/auth/me?surprise=1")).status).toBe(401);
  expect((await platform.delete("/api/storage/files/one?surprise=1")).status).toBe(401);
  expect((await platform.get("/api/db/shared/tables/nothing?surprise=1")).status).toBe(404);
  expect((await platform.get("/api/nothing?surprise=1")).status).toBe(404);
});

test("[HT110] several unknown parameters are named together, a thousand in a short answer", async () => {
  const two = await platform.get<ErrorAnswer>("/api/health?a=1&b=2");
  expect([two.status, Object.keys(two.body.data ?? {})]).toEqual([400, ["a", "b"]]);
  const many = Array.from({ length: 1_000 }, (_, index) => `p${index}=`).join("&");
  const answer = await platform.get(`/api/health?${many}`);
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.body).length).toBeLessThan(4_096);
  expect((await platform.get("/api/health?__proto__=1")).status).toBe(400);
});

test("[TB5] limit and its alias perPage together are 400, since one of them would be ignored", async () => {
  const answer = await user.get<ErrorAnswer>("/api/db/shared/tables/notes?limit=1&perPage=2");
  expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, ["perPage"]]);
});

test("[HT141] every endpoint of the document that takes no body refuses one, GET and HEAD included", async () => {
  const accepted: string[] = [];
  let triedCount = 0;
  for (const { path, method, operation } of operations()) {
    if (operation.requestBody !== undefined) continue;
    const required = operation.parameters.filter((one) => one.in === "query" && one.required === true);
    const query = required.map(({ name }) => `${name}=1`).join("&");
    const isUser = clientFor(path, operation) === user;
    const credentials = isUser
      ? `Authorization: Bearer ${user.token}`
      : `X-Platform-Service-Key: ${platform.serviceKey}`;
    for (const body of ['Content-Length: 7\r\n\r\n{"a":1}', "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"]) {
      triedCount += 1;
      const head = `${method} ${path}?${query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${credentials}\r\n`;
      const answer = await sendRaw(platform, `${head}Content-Type: application/json\r\n${body}`, 5_000);
      const isRight = /^HTTP\/1\.1 400 /.test(answer) && (method === "HEAD" || answer.includes("takes no body here"));
      // A link opens what its token is for.
      const isToken = query === "token=1" && answer.startsWith("HTTP/1.1 401 ");
      if (!isRight && !isToken) accepted.push(`${method} ${path}: ${answer.slice(0, 400)}`);
    }
  }
  expect(accepted).toEqual([]);
  expect(triedCount).toBeGreaterThan(140);
  expect((await user.get("/api/auth/me")).status).toBe(200);
});

test("[HT141] an empty body is none: a length of 0, and none at all", async () => {
  const made = await user.post<{ id: string }>("/api/db/shared/tables/notes", { title: "empty" });
  const path = `/api/db/shared/tables/notes/${made.body.id}`;
  const bearer = `Host: localhost\r\nConnection: close\r\nAuthorization: Bearer ${user.token}`;
  expect(await sendRaw(platform, `GET ${path} HTTP/1.1\r\n${bearer}\r\nContent-Length: 0\r\n\r\n`, 5_000)).toStartWith(
    "HTTP/1.1 200 ",
  );
  expect(await sendRaw(platform, `DELETE ${path} HTTP/1.1\r\n${bearer}\r\n\r\n`, 5_000)).toStartWith("HTTP/1.1 200 ");
});

test("[HT23] a compressed body is 415 and its coding is named, by every endpoint that takes one", async () => {
  const accepted: string[] = [];
  let triedCount = 0;
  for (const { path, method, operation } of operations()) {
    const [contentType] = Object.keys(operation.requestBody?.content ?? {});
    if (contentType === undefined) continue;
    const required = operation.parameters.filter((one) => one.in === "query" && one.required === true);
    const query = required.map(({ name }) => `${name}=1`).join("&");
    for (const coding of ["gzip", "br", "gzip, identity"]) {
      triedCount += 1;
      const headers = { "content-type": contentType, "content-encoding": coding };
      const init = { method, headers, body: gzipSync("{}") };
      const answer = await clientFor(path, operation).fetch(`${path}?${query}`, init);
      const text = await answer.text();
      const isToken = query.startsWith("token=") && answer.status === 401;
      if ((answer.status !== 415 || !text.includes(`got ${coding}`)) && !isToken) {
        accepted.push(`${method} ${path}: ${answer.status} ${text.slice(0, 200)}`);
      }
    }
  }
  expect(accepted).toEqual([]);
  expect(triedCount).toBeGreaterThan(150);
  const plain = { method: "POST", headers: { "content-type": "application/json", "content-encoding": "identity" } };
  expect((await user.fetch("/api/db/shared/tables/notes", { ...plain, body: "{}" })).status).toBe(201);
});

test("[HT111] the OAuth callback accepts parameters that the provider adds", async () => {
  const answer = await platform.get<ErrorAnswer>(
    "/api/auth/oauth/github/callback?state=wrong&code=1&iss=x&scope=a&session_state=b",
  );
  expect(Object.keys(answer.body.data ?? {})).toEqual(["state"]);
  expect((await platform.fetch("/swagger?surprise=1")).status).toBe(200);
});
