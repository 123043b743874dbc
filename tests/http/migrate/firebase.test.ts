import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createCipheriv, scryptSync } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compiler } from "../../../scripts/typescript.ts";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { platformCommand, type TestPlatform, temporaryDirectory } from "../../support/index.ts";
import { migrate, started } from "./moved.ts";

// Exports of a Firebase project: its accounts, documents, files and rules.

setDefaultTimeout(120_000);

// The parameters and the first account are the example that Firebase publishes with its scrypt.
const PARAMETERS = {
  algorithm: "SCRYPT",
  base64_signer_key: "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==",
  base64_salt_separator: "Bw==",
  rounds: 8,
  mem_cost: 14,
};
const PUBLISHED = {
  salt: "42xEC+ixf3L2lw==",
  passwordHash: "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==",
};

/** Computes a hash as Firebase does, apart from the code that is tested. Its base64 is the one for URLs, as in some exports. */
function hashOf(password: string): { salt: string; passwordHash: string } {
  const salt = Buffer.from([255, 254, 253, 1, 2, 3, 4]);
  const separator = Buffer.from(PARAMETERS.base64_salt_separator, "base64");
  const options = { N: 2 ** PARAMETERS.mem_cost, r: PARAMETERS.rounds, p: 1, maxmem: 64 * 1024 * 1024 };
  const key = scryptSync(password, Buffer.concat([salt, separator]), 64, options).subarray(0, 32);
  const cipher = createCipheriv("aes-256-ctr", key, Buffer.alloc(16));
  const hash = cipher.update(Buffer.from(PARAMETERS.base64_signer_key, "base64"));
  const written = (bytes: Buffer): string => bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_");
  return { salt: written(salt), passwordHash: written(hash) };
}

const USERS = [
  {
    localId: "u1",
    email: "ann@example.com",
    emailVerified: true,
    ...PUBLISHED,
    displayName: "Ann",
    createdAt: "1486324120000",
  },
  {
    ...{ localId: "u2", email: "bob@example.com", ...hashOf("another password"), disabled: false },
    ...{ customAttributes: '{"admin":true}', providerUserInfo: [{ providerId: "google.com", rawId: "g-17" }] },
  },
  { localId: "u3", email: "dis@example.com", ...PUBLISHED, disabled: true },
  { localId: "u4", phoneNumber: "+431", providerUserInfo: [{ providerId: "phone", rawId: "+431" }] },
  { localId: "u5", email: "eva@example.com", providerUserInfo: [{ providerId: "apple.com", rawId: "a-1" }] },
];
const typed = (type: string, values: JsonObject): JsonObject => ({ __type__: type, ...values });
const DOCUMENTS = [
  {
    path: "films/heat",
    data: {
      ...{ title: "Heat", year: 1995, rating: 8, seen: true, tags: ["a", 1], mixed: 1, id: "own" },
      premiere: typed("timestamp", { value: "1995-12-15T00:00:00.123456Z" }),
      at: typed("geopoint", { latitude: 34.05, longitude: -118.24 }),
      director: typed("reference", { path: "people/mann" }),
      details: {
        opened: typed("timestamp", { value: "1995-12-15T00:00:00Z" }),
        by: typed("reference", { path: "people/x" }),
      },
    },
  },
  {
    path: "films/up",
    data: {
      title: "Up",
      rating: 8.5,
      mixed: "text",
      director: typed("reference", { path: "people/gone" }),
      note: null,
    },
  },
  { path: "films/heat/reviews/r1", data: { text: "Good", stars: 5 } },
  { path: "projects/p/databases/(default)/documents/films/up/reviews/r1", data: { text: "Fine" } },
  { path: "people/mann", data: { name: "Mann" } },
  { path: "my-things/t", data: { "odd name": 1 } },
];

let folder: string;
let directory: string;
let report: string;
let config: string;
let platform: TestPlatform;
const place = (name: string): string => join(folder, name);
const run = (...more: string[]) =>
  migrate(
    ...[place("users.json"), "--from", "firebase", "--firestore", place("documents.ndjson"), "--files", place("files")],
    ...["--hash-parameters", place("hash.json"), ...more],
  );
const write = (documents: readonly object[]): void =>
  writeFileSync(place("documents.ndjson"), documents.map((one) => `${JSON.stringify(one)}\n`).join(""));

beforeAll(async () => {
  folder = temporaryDirectory();
  writeFileSync(place("users.json"), JSON.stringify({ users: USERS }));
  writeFileSync(place("hash.json"), JSON.stringify(PARAMETERS));
  writeFileSync(place("firestore.rules"), "service cloud.firestore { match /{d=**} { allow read: if `true`; } }");
  write(DOCUMENTS);
  mkdirSync(join(folder, "files", "posters", "films"), { recursive: true });
  writeFileSync(join(folder, "files", "posters", "films", "heat.png"), "png");
  directory = join(temporaryDirectory(), "app");
  expect(await run("--into", directory)).toMatchObject({ code: 0, stdout: "" });
  config = readFileSync(join(directory, "platform.config.ts"), "utf8");
  report = readFileSync(join(directory, "report.md"), "utf8");
  platform = await started({ directory, config, report }, { GOOGLE_CLIENT_ID: "id", GOOGLE_CLIENT_SECRET: "secret" });
});
afterAll(() => platform?.stop());

const record = async (table: string, id: string): Promise<JsonObject> =>
  (await platform.service.get<JsonObject>(`/api/db/shared/tables/${table}/${id}`)).body;
const signIn = async (name: string, password: string): Promise<number> =>
  (await platform.post("/api/auth/signin", { email: `${name}@example.com`, password })).status;

test("[MG90] everybody signs in with the password of before, and who is disabled does not", async () => {
  expect([await signIn("ann", "user1password"), await signIn("ann", "another")]).toEqual([200, 401]);
  expect([await signIn("bob", "another password"), await signIn("dis", "user1password")]).toEqual([200, 403]);
  const { body } = await platform.service.get<JsonObject>("/api/auth/admin/users/u1");
  expect(body).toMatchObject({ displayName: "Ann", emailVerified: true, createdAt: "2017-02-05T19:48:40.000Z" });
  const { body: bob } = await platform.service.get<JsonObject>("/api/auth/admin/users/u2");
  expect(bob).toMatchObject({ emailVerified: false, appMetadata: { customClaims: { admin: true } } });
  const { body: means } = await platform.service.get("/api/auth/admin/users/u2/means");
  expect(means).toMatchObject({ identities: [{ provider: "google" }] });
});

test("[MG91] documents become records, subcollections tables with joined ids", async () => {
  expect(await record("films", "heat")).toEqual({
    ...{ id: "heat", title: "Heat", year: 1995, rating: 8, seen: true, tags: ["a", 1], mixed: 1, id_field: "own" },
    ...{ premiere: "1995-12-15T00:00:00.123Z", at: { lat: 34.05, lng: -118.24 }, director: "mann" },
    details: { opened: "1995-12-15T00:00:00.000Z", by: "people/x" },
  });
  expect(await record("films", "up")).toMatchObject({ rating: 8.5, mixed: "text", director: null, seen: null });
  expect(await record("films_reviews", "heat~r1")).toMatchObject({ text: "Good", stars: 5 });
  expect(await record("films_reviews", "up~r1")).toMatchObject({ text: "Fine", stars: null });
  expect(await record("my_things", "t")).toMatchObject({ id: "t" });
  expect(config).toContain('director: { references: "people", onDelete: "setNull", mayBeHidden: true }');
  const file = await platform.service.fetch("/api/storage/posters/films/heat.png");
  expect([await file.text(), file.headers.get("content-type")]).toEqual(["png", "image/png"]);
});

test("[MG92] nobody has a right, and the report quotes the rules and says what was not moved", async () => {
  expect((await platform.get("/api/db/shared/tables/films")).status).toBe(401);
  for (const text of [
    "| accounts | 4 | 4 |",
    "| films | 2 | 2 |",
    "the account u4, which has no address",
    "identities of apple.com",
    "custom claims are in `appMetadata`",
    "**films.director**: 1 references to documents that do not exist",
    "**firestore.rules**: security rules, to be written again as `access`: `service cloud.firestore",
    "service keys alone read and write",
  ]) {
    expect(report).toContain(text);
  }
  const file = join(directory, "platform.config.ts");
  const checked = Bun.spawnSync([...platformCommand(), "check", "--config", file]);
  expect(checked.exitCode).toBe(0);
  Bun.spawnSync([...platformCommand(), "init", directory]);
  const { exitCode, stdout } = Bun.spawnSync([...compiler(), "-p", join(directory, "tsconfig.json")]);
  expect([exitCode, stdout.toString()]).toEqual([0, ""]);
});

test("[MG90] without parameters passwords are reported, and what is no export is refused", async () => {
  const plan = await migrate(place("users.json"), "--from", "firebase", "--plan");
  expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining("3 passwords, whose parameters are not known")]);
  const wrong: [name: string, text: string, words: string][] = [
    ["users.json", "[]", "is no JSON object"],
    ["users.json", "{}", "has no users"],
    ["hash.json", '{"algorithm":"BCRYPT"}', "algorithm must be SCRYPT"],
    ["documents.ndjson", '{"path":"films","data":{}}\n', "line 1 is no { path, data } of a document"],
    [
      "documents.ndjson",
      '{"path":"a/b","data":{}}\n\n{"path":"a/b","data":{}}',
      "line 3 has a path that was there before",
    ],
  ];
  for (const [name, text, words] of wrong) {
    const before = readFileSync(place(name));
    writeFileSync(place(name), text);
    expect(await run("--plan")).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
    writeFileSync(place(name), before);
  }
  expect((await migrate(place("users.json"), "--from", "supabase", "--firestore", "x", "--plan")).code).toBe(2);
});

test("[MG93] --again brings later exports", async () => {
  await platform.kill("SIGTERM");
  write([...DOCUMENTS.slice(1), { path: "films/heat", data: { ...DOCUMENTS[0]?.data, title: "Heat, again" } }]);
  writeFileSync(
    place("users.json"),
    JSON.stringify({ users: [{ ...USERS[0], ...hashOf("a third") }, ...USERS.slice(1)] }),
  );
  expect(await run("--into", directory, "--again")).toMatchObject({ code: 0 });
  platform = await started({ directory, config, report }, { GOOGLE_CLIENT_ID: "id", GOOGLE_CLIENT_SECRET: "secret" });
  expect(await record("films", "heat")).toMatchObject({ title: "Heat, again" });
  // A sign-in has replaced the hash, so the password of here stays.
  expect([await signIn("ann", "user1password"), await signIn("ann", "a third")]).toEqual([200, 401]);
});
