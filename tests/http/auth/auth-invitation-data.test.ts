import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import {
  lastMail,
  mailedToken,
  nextEmail,
  outbox,
  PASSWORD,
  signUp,
  type Ticket,
  type Tokens,
} from "./auth-support.ts";

const ADMIN_KEY = "admin-key-0123456789abcdefghijklmnopqrstuvw";
const INVITE = "/api/auth/admin/users/invite";

const CONFIG = `export default {
  server: { publicUrl: "https://api.example.com" },
  auth: {
    magicLink: true,
    mail: { templates: { invite: { subject: "{{inviter}} invites you to {{data.team.name}} as {{data.role}}{{data.list}}{{data.none}}", text: "{{link}}" } } },
    hooks: {
      async afterAccept(user, { role, data, invitedBy }, app) {
        if (data.isBroken) throw new Error("not today");
        await app.db("shared").table("members").insert({ userId: user.id, role, team: data.team?.name ?? null, invitedBy });
      },
    },
  },
  databases: { shared: { tables: {
    members: { schema: { userId: { type: "string" }, role: { type: "string" }, team: { type: "string" }, invitedBy: { type: "string" } } },
    seen: { access: { insert: (auth, record) => JSON.stringify(auth.invitation) === record.expected && (auth.invitation === null || Object.isFrozen(auth.invitation.data)) } },
  } } },
  serviceKeys: { admin: { key: "${ADMIN_KEY}", scopes: ["auth:admin:*:read", "auth:admin:*:write"] } },
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
};`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

interface Invited {
  user: JsonObject & { id: string };
  link?: string;
}
const invite = (body: JsonObject) => platform.service.post<Invited & ErrorAnswer>(INVITE, body);
const accept = (token: string, as: Pick<TestPlatform, "post"> = platform, body: JsonObject = { password: PASSWORD }) =>
  as.post<Tokens & Ticket & ErrorAnswer>("/api/auth/accept-invite", { token, ...body });
const members = async (userId: string) =>
  (
    await platform.service.get<{ items: JsonObject[] }>(
      `/api/db/shared/tables/members?sort=createdAt&filter=${encodeURIComponent(JSON.stringify([["userId", "==", userId]]))}`,
    )
  ).body.items;
/** Whether rules see this as `auth.invitation`. */
const sees = async (accessToken: string, expected: JsonObject | null) =>
  (await platform.as(accessToken).post("/api/db/shared/tables/seen", { expected: JSON.stringify(expected) })).status ===
  201;
const ACME = { team: { name: "Acme" }, role: "editor", list: ["x"] };

test("[AU366] an accepted invitation makes a member in one step, and its mail says who invites to what", async () => {
  const ann = await signUp(platform);
  await platform.as(ann.accessToken).patch("/api/auth/me", { displayName: "Ann" });
  const email = nextEmail();
  const { status, body } = await invite({ email, role: "reader", data: ACME, invitedBy: ann.user.id });
  expect(status).toBe(201);
  expect(body.link).toBeUndefined();
  expect(lastMail(platform, email).subject).toBe("Ann invites you to Acme as editor");
  const accepted = await accept(mailedToken(platform, email));
  expect([accepted.status, accepted.body.user?.role]).toEqual([200, "reader"]);
  await until("the member is there", async () => (await members(body.user.id)).length === 1);
  expect(await members(body.user.id)).toMatchObject([{ role: "reader", team: "Acme", invitedBy: ann.user.id }]);
});

test("[AU366] the hook survives a killed server, and runs for invitations without data too", async () => {
  const own = await testPlatform({ config: CONFIG });
  const email = nextEmail();
  const { body } = await own.service.post<Invited>(INVITE, { email });
  const token = mailedToken(own, email);
  expect((await own.post("/api/auth/accept-invite", { token, password: PASSWORD })).status).toBe(200);
  await own.kill();
  await own.restart();
  const path = "/api/db/shared/tables/members";
  await until("the member is there", async () => (await own.service.get<{ total: number }>(path)).body.total === 1);
  expect((await own.service.get<{ items: JsonObject[] }>(path)).body.items).toMatchObject([
    { userId: body.user.id, role: null, team: null, invitedBy: null },
  ]);
  await own.stop();
});

test("[AU365] the link is answered only where nothing is mailed, which needs a scope of its own", async () => {
  const email = nextEmail();
  const admin = platform.withKey(ADMIN_KEY);
  expect((await admin.post(INVITE, { email, sendMail: false })).status).toBe(403);
  expect((await platform.service.get<{ users: [] }>(`/api/auth/admin/users?email=${email}`)).body.users).toEqual([]);
  const { body } = await invite({ email, sendMail: false });
  expect(outbox(platform).filter(({ to }) => to === email)).toEqual([]);
  const token = new URL(body.link ?? "").searchParams.get("token") ?? "";
  expect((await accept(token)).status).toBe(200);
  expect((await admin.post<Invited>(INVITE, { email: nextEmail(), sendMail: true })).body.link).toBeUndefined();
});

test("[AU365] faults of data and inviter are named, and invite nobody", async () => {
  const email = nextEmail();
  const large = await invite({ email, data: { text: "x".repeat(4_100) } });
  expect([large.status, Object.keys(large.body.data ?? {})]).toEqual([413, ["data"]]);
  for (const [body, field] of [
    [{ invitedBy: "nobody" }, "invitedBy"],
    [{ data: "Acme" }, "data"],
    [{ sendMail: "no" }, "sendMail"],
  ] as const) {
    const answer = await invite({ email, ...body });
    expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, [field]]);
  }
  expect((await platform.service.get<{ users: [] }>(`/api/auth/admin/users?email=${email}`)).body.users).toEqual([]);
});

test("[AU367] a user with an account accepts signed in; nobody else can, and role and metadata stay", async () => {
  const bob = await signUp(platform);
  const eve = await signUp(platform);
  const email = String(bob.user.email);
  const answer = await invite({ email, role: "admin", metadata: { a: 1 }, data: ACME });
  expect([answer.status, answer.body.user]).toMatchObject([201, { id: bob.user.id, role: "user", metadata: {} }]);
  const token = mailedToken(platform, email);
  expect((await accept(token)).status).toBe(401);
  expect((await accept(token, platform.as(eve.accessToken))).status).toBe(403);
  const acting = { headers: { "x-platform-act-as": bob.user.id } };
  expect((await platform.service.post("/api/auth/accept-invite", { token }, acting)).status).toBe(401);
  expect(await members(bob.user.id)).toEqual([]);
  const own = platform.as(bob.accessToken);
  const accepted = await accept(token, own, {});
  expect([accepted.status, accepted.body as unknown]).toEqual([
    200,
    { user: (await own.get("/api/auth/me")).body["user"] as JsonObject },
  ]);
  expect(accepted.body.user.role).toBe("user");
  await until("the member is there", async () => (await members(bob.user.id)).length === 1);
  // `role` is that of the invitation, for what the app makes of it.
  expect(await members(bob.user.id)).toMatchObject([{ role: "admin", team: "Acme" }]);
  expect((await accept(token, own, {})).status).toBe(400);
  // The password is the one of before: the mail has opened nothing.
  expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(200);
  expect(await sees(bob.accessToken, null)).toBe(true);
});

test("[AU367] two acceptances at once are one", async () => {
  const bob = await signUp(platform);
  await invite({ email: String(bob.user.email), data: ACME });
  const token = mailedToken(platform, String(bob.user.email));
  const own = platform.as(bob.accessToken);
  const answers = await Promise.all(Array.from({ length: 6 }, () => accept(token, own, {})));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400, 400]);
});

test("[AU368] invitations of two teams stay beside one another, also when the password is set or forgotten meanwhile", async () => {
  const email = nextEmail();
  const tokens: string[] = [];
  for (const name of ["Acme", "Beta", "Gamma"]) {
    expect((await invite({ email, data: { team: { name } } })).status).toBe(201);
    tokens.push(mailedToken(platform, email));
  }
  const [acme = "", beta = "", gamma = ""] = tokens;
  const first = await accept(acme);
  expect(first.status).toBe(200);
  expect((await accept(beta)).status).toBe(401);
  expect((await accept(beta, platform.as(first.body.accessToken), {})).status).toBe(200);
  await platform.post("/api/auth/request-password-reset", { email });
  const reset = { token: mailedToken(platform, email), newPassword: "another password" };
  expect((await platform.post("/api/auth/reset-password", reset)).status).toBe(200);
  expect((await accept(gamma)).status).toBe(401);
  const { body } = await platform.post<Tokens>("/api/auth/signin", { email, password: "another password" });
  expect((await accept(gamma, platform.as(body.accessToken), {})).status).toBe(200);
  const names = async () => (await members(body.user.id)).map(({ team }) => team).sort();
  await until("all are there", async () => (await names()).length === 3);
  expect(await names()).toEqual(["Acme", "Beta", "Gamma"]);
});

test("[AU368] an invitation ends with the address, with a revocation, and with the account's disabling", async () => {
  const service = platform.service;
  const pathOf = (id: string) => `/api/auth/admin/users/${id}`;
  const ends: ((id: string) => Promise<unknown>)[] = [
    (id) => service.patch(pathOf(id), { email: nextEmail(), emailVerified: true }),
    (id) => service.post(`${pathOf(id)}/revoke`),
    async (id) => {
      await service.patch(pathOf(id), { disabled: true });
      await service.patch(pathOf(id), { disabled: false });
    },
  ];
  for (const end of ends) {
    const bob = await signUp(platform);
    await invite({ email: String(bob.user.email), data: ACME });
    const token = mailedToken(platform, String(bob.user.email));
    await end(bob.user.id);
    const email = String((await service.get(pathOf(bob.user.id))).body["email"]);
    const { body } = await platform.post<Tokens>("/api/auth/signin", { email, password: PASSWORD });
    expect((await accept(token, platform.as(body.accessToken), {})).status).toBe(400);
  }
});

test("[AU369] auth.invitation is in the session that accepting began alone, and survives a restart", async () => {
  const email = nextEmail();
  await invite({ email, data: ACME });
  const { body } = await accept(mailedToken(platform, email));
  expect(await sees(body.accessToken, { data: ACME })).toBe(true);
  const other = await platform.post<Tokens>("/api/auth/signin", { email, password: PASSWORD });
  expect(await sees(other.body.accessToken, null)).toBe(true);
  await platform.restart();
  expect(await sees(body.accessToken, { data: ACME })).toBe(true);
  const refreshed = await platform.post<Tokens>("/api/auth/refresh", { refreshToken: body.refreshToken });
  expect(await sees(refreshed.body.accessToken, { data: ACME })).toBe(true);
  const plain = nextEmail();
  await invite({ email: plain });
  expect(await sees((await accept(mailedToken(platform, plain))).body.accessToken, null)).toBe(true);
});
