import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const BASE = "/api/auth/admin/users";
const HASH = "$2b$04$TTuRvLAC5pQ2lUE3QoMzLuDCVJzbl9ENK/AHjdHTsiPMgJOS4Hgmi";

interface Entry {
  id: string;
  email: string | null;
  displayName: string | null;
}
interface Page {
  users: Entry[];
  cursor: string | null;
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: { auth: { anonymous: true } } });
  const named = (email: string, displayName: string | null) => ({ email, displayName, passwordHash: HASH });
  const users = [
    named("zoe@example.com", "anna Zoe"),
    named("anna@example.com", "Anna"),
    named("Annabel@Example.com", null),
    named("bo@example.com", "ANNA"),
    named("carl@example.com", "Carl Anna"),
    named("dora@example.com", "Ännchen"),
    named("percent@example.com", "%_anna"),
  ];
  const twins = Array.from({ length: 1_000 - users.length }, (_, index) => named(`twin${index}@example.com`, "Twin"));
  const imported = await platform.service.post("/api/admin/auth/users/import", { users: [...users, ...twins] });
  expect(imported.status).toBe(200);
});
afterAll(() => platform.stop());

const find = (query: Record<string, string | number>) => platform.service.get<Page>(BASE, { query });
const emails = ({ users }: Page) => users.map(({ email }) => email?.split("@")[0]);

test("[US100] `email` finds the one user who has it, whatever the case, and nobody else", async () => {
  const found = await find({ email: " ANNABEL@example.com", limit: 1 });
  expect([emails(found.body), found.body.cursor]).toEqual([["annabel"], null]);
  for (const email of ["annab@example.com", "nobody@example.com", "no address", ""]) {
    expect((await find({ email })).body).toEqual({ users: [], cursor: null });
  }
});

test("[US101] `q` finds by the beginning of email or name: first by email, then by name, each user once", async () => {
  expect(emails((await find({ q: "anna" })).body)).toEqual(["anna", "annabel", "bo", "zoe"]);
  expect(emails((await find({ q: " ANNA " })).body)).toEqual(["anna", "annabel", "bo", "zoe"]);
  expect(emails((await find({ q: "Änn" })).body)).toEqual(["dora"]);
  expect(emails((await find({ q: "%" })).body)).toEqual(["percent"]);
  expect(emails((await find({ q: "_" })).body)).toEqual([]);
  expect(emails((await find({ q: "carl@example.com" })).body)).toEqual(["carl"]);
});

test("[US101] pages of a search contain each user once, also among a thousand of one name", async () => {
  for (const [q, count, limit] of [
    ["anna", 4, 1],
    ["twin", 993, 100],
    ["TWIN", 993, 1_000],
    ["t", 993, 7],
  ] as const) {
    const seen: string[] = [];
    let cursor: string | null = "0";
    for (let page = 0; cursor !== null && page < 400; page++) {
      const answer: { body: Page } = await find({ q, limit, cursor });
      expect(answer.body.users.length).toBeLessThanOrEqual(limit);
      seen.push(...answer.body.users.map(({ id }) => id));
      cursor = answer.body.cursor;
    }
    expect([q, cursor, seen.length, new Set(seen).size]).toEqual([q, null, count, count]);
  }
});

test("[US101] a wrong search is 400, and names the parameter", async () => {
  const cases: [string, Record<string, string>][] = [
    ["q", { q: "" }],
    ["q", { q: "  " }],
    ["q", { q: "x".repeat(255) }],
    ["q", { q: "a", email: "a@example.com" }],
    ["cursor", { q: "a", cursor: "5" }],
    ["cursor", { q: "a", cursor: "bm90IG9uZQ" }],
    ["cursor", { email: "a@example.com", cursor: "5" }],
    ["name", { name: "a" }],
  ];
  for (const [field, query] of cases) {
    const answer = await platform.service.get<ErrorAnswer>(BASE, { query });
    expect([query, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([query, 400, [field]]);
  }
});

test("[US102] a user has the same members in detail, PATCH and POST, and the same names in lists", async () => {
  const fields = { email: "new@example.com", password: "correct horse battery", displayName: "New" };
  const { body: created } = await platform.service.post<{ user: Entry }>(BASE, fields);
  const { body: detail } = await platform.service.get<Entry & { name: string }>(`${BASE}/${created.user.id}`);
  const { name, ...rest } = detail;
  expect([name, rest]).toEqual(["New", created.user]);
  const { body: changed } = await platform.service.patch<Entry>(`${BASE}/${created.user.id}`, {});
  expect(changed).toEqual(rest);
  const { body: page } = await find({ email: fields.email });
  expect(rest).toMatchObject(page.users[0] ?? { id: "none" });
  expect(Object.keys(page.users[0] ?? {}).sort()).toEqual([
    "createdAt",
    "disabled",
    "displayName",
    "email",
    "emailVerified",
    "id",
    "isAnonymous",
    "role",
  ]);
});

test("[US101] an anonymous user is found by name alone", async () => {
  const guest = await platform.post<{ user: Entry; accessToken: string }>("/api/auth/signin/anonymous");
  await platform.as(guest.body.accessToken).patch("/api/auth/me", { displayName: "Guest of honour" });
  expect((await find({ q: "guest" })).body.users).toMatchObject([{ id: guest.body.user.id, email: null }]);
});
