import { afterAll, beforeAll, expect } from "bun:test";
import { enrol, lastMail } from "../http/auth/auth-support.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import { testBrowser } from "../support/browser.ts";
import { inEveryView, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const RP_ID = "app.example.com";
const ORIGIN = `https://${RP_ID}`;
const CONFIG = `{
  databases: {
    shared: {
      tables: {
        films: { schema: { title: { type: "string" } } },
        reviews: {
          schema: { film: { type: "string", references: "films" }, ownerId: { type: "string" }, text: { type: "text" } },
          indexes: [{ fields: ["film", "ownerId"] }],
        },
        secrets: { schema: { ownerId: { type: "string" } }, indexes: [{ fields: ["ownerId"] }] },
      },
    },
  },
  auth: { passkeys: { rpName: "Film Club", rpId: "${RP_ID}", origin: "${ORIGIN}" }, mfa: { totp: true } },
  serviceKeys: { reader: { key: "${READER}", scopes: ["auth:admin:*:read", "db:shared:reviews:read"] } },
}`;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const open = (path: string, options: Parameters<typeof openDashboard>[3] = {}) =>
  openDashboard(browser, platform, path, options);

/** A user with two sessions and what refers to one. */
async function somebody() {
  const user = await signIn(platform);
  const second = await platform.post<{ accessToken: string }>("/api/auth/signin", {
    email: user.email,
    password: user.password,
  });
  expect(second.status).toBe(200);
  await platform.service.post("/api/db/shared/tables/films", { id: `film of ${user.id}`, title: "Heat" });
  const review = { film: `film of ${user.id}`, ownerId: user.id, text: "good" };
  expect((await platform.service.post("/api/db/shared/tables/reviews", review)).status).toBe(201);
  expect((await platform.service.post("/api/db/shared/tables/secrets", { ownerId: user.id })).status).toBe(201);
  return user;
}

browserTest("[AD69] sessions of a user are shown, and ended one by one or all", async () => {
  const { id } = await somebody();
  const sessions = async () =>
    (await platform.service.get<{ sessions: object[] }>(`/api/auth/admin/users/${id}/means`)).body.sessions.length;
  const { page, problems } = await open(`/admin/users/${id}`);
  const section = page.getByRole("region", { name: "Sessions" });
  await section.getByRole("button", { name: "End", exact: true }).first().click();
  await until("one session has ended", async () => (await sessions()) === 1);
  await section.getByRole("button", { name: "End sessions" }).click();
  await section.getByText("The user is signed in nowhere.").waitFor();
  expect(await sessions()).toBe(0);
  await page
    .getByRole("region", { name: "Ways to sign in" })
    .getByText(/^The address alone/)
    .waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD132] another account is merged into a user after a preview, and a user is exported", async () => {
  const [into, from] = [await signIn(platform), await signIn(platform)];
  const { page, problems } = await open(`/admin/users/${into.id}`);
  await page.getByRole("button", { name: "Merge" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Email or id of the account that goes").fill("nobody@example.com");
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("There is no user with the id or address").waitFor();
  await dialog.getByLabel("Email or id of the account that goes").fill(from.email);
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText(`${from.email} goes`).waitFor();
  expect((await platform.service.get(`/api/auth/admin/users/${from.id}`)).status).toBe(200);
  await dialog.getByRole("button", { name: "Merge" }).click();
  await page.getByText("The accounts are one now").waitFor();
  expect((await platform.service.get(`/api/auth/admin/users/${from.id}`)).status).toBe(404);
  const file = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  expect((await file).suggestedFilename()).toBe(`${into.id}.json`);
  expect(problems).toEqual([]);
});

browserTest("[AD26] the role of a user that was changed meanwhile stays when the name is saved", async () => {
  const { id } = await signIn(platform);
  const path = `/api/auth/admin/users/${id}`;
  await platform.service.patch(path, { role: "editor", displayName: "Ada" });
  const { page } = await open(`/admin/users/${id}`);
  await page.getByLabel("Name", { exact: true }).fill("Ada L.");
  expect((await platform.service.patch(path, { role: "user" })).status).toBe(200);
  await page.getByRole("button", { name: "Save" }).first().click();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect((await platform.service.get(path)).body).toMatchObject({ displayName: "Ada L.", role: "user" });
});

browserTest(
  "[AD26] what is typed stays when the user is loaded again, and saving leaves what others changed",
  async () => {
    const { id } = await signIn(platform);
    const path = `/api/auth/admin/users/${id}`;
    await platform.service.put(`${path}/claims`, { team: "red", level: 1, seat: "a" });
    const { page } = await open(`/admin/users/${id}`);
    const [name, claims] = [page.getByLabel("Name", { exact: true }), page.getByRole("textbox", { name: "Claims" })];
    await name.fill("Ada L.");
    await claims.fill('{ "team": "blue", "level": 1 }');
    await platform.service.patch(path, { role: "editor" });
    await platform.service.put(`${path}/claims`, { team: "red", level: 2, seat: "a", badge: true });
    // Loads the user again.
    await page.getByRole("button", { name: "Disable" }).click();
    await until("the new role is shown", async () => (await page.getByLabel("Role").inputValue()) === "editor");
    expect([await name.inputValue(), await claims.inputValue()]).toEqual(["Ada L.", '{ "team": "blue", "level": 1 }']);
    await page.getByRole("region", { name: "Claims" }).getByRole("button", { name: "Save" }).click();
    await page.getByText(/^Saved; they count/).waitFor();
    await page.getByRole("region", { name: "Profile" }).getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    const { body } = await platform.service.get(path);
    expect(body).toMatchObject({ displayName: "Ada L.", role: "editor" });
    expect(body["customClaims"]).toEqual({ team: "blue", level: 2, badge: true });
    // What others change from now on is shown.
    await until("the claims are shown", async () => (await claims.inputValue()).includes('"badge": true'));
  },
);

browserTest("[AD90] address, verification and password are set, and links mailed", async () => {
  const user = await signIn(platform);
  const path = `/api/auth/admin/users/${user.id}`;
  const { page, problems } = await open(`/admin/users/${user.id}`);
  const card = page.getByRole("region", { name: "Address, phone and password" });
  await card.getByRole("button", { name: "Mail a verification link" }).click();
  await page.getByText("The link is mailed").waitFor();
  expect(lastMail(platform, user.email).kind).toBe("verification");
  await card.getByRole("button", { name: "Mail a reset link" }).click();
  await until("the reset is mailed", () => lastMail(platform, user.email).kind === "passwordReset");
  await card.getByLabel("Email").fill("somebody.new@example.com");
  await card.getByLabel("The address is verified").check();
  await card.getByLabel("Phone").fill("+43 660 7654321");
  await card.getByLabel("New password").fill("set in the dashboard");
  await card.getByText(/^Saving signs the user out/).waitFor();
  await card.getByText(`${user.email} is told by mail`).waitFor();
  await card.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect((await platform.service.get(path)).body).toMatchObject({
    email: "somebody.new@example.com",
    emailVerified: true,
    phone: "+436607654321",
  });
  const signedIn = await platform.post("/api/auth/signin", {
    email: "somebody.new@example.com",
    password: "set in the dashboard",
  });
  expect(signedIn.status).toBe(200);
  expect((await user.get("/api/auth/me")).status).toBe(401);
  expect(lastMail(platform, user.email).kind).toBe("emailChanged");
  expect(await card.getByLabel("New password").inputValue()).toBe("");
  expect(problems).toEqual([]);
});

browserTest("[AD90] a key without the scope sees the address, and can change neither it nor the password", async () => {
  const user = await signIn(platform);
  const { page } = await open(`/admin/users/${user.id}`, { key: READER });
  const card = page.getByRole("region", { name: "Address, phone and password" });
  expect(await card.getByLabel("Email").inputValue()).toBe(user.email);
  expect(await card.getByLabel("New password").count()).toBe(0);
  expect(await card.getByRole("button").count()).toBe(0);
});

browserTest("[AD69] a passkey, and second factors, are removed after a question", async () => {
  const user = await signIn(platform);
  const authenticator = createAuthenticator({ rpId: RP_ID, origin: ORIGIN });
  const options = await user.post<{ challenge: string }>("/api/auth/passkeys/register-options");
  const passkey = { ...authenticator.register(options.body), name: "Old phone" };
  expect((await user.post("/api/auth/passkeys/register", passkey)).status).toBe(200);
  await enrol(user);
  const means = async () => {
    const { body } = await platform.service.get<Record<"passkeys" | "factors", object[]>>(
      `/api/auth/admin/users/${user.id}/means`,
    );
    return { passkeys: body.passkeys.length, factors: body.factors.length };
  };
  expect(await means()).toEqual({ passkeys: 1, factors: 1 });
  const { page, problems } = await open(`/admin/users/${user.id}`);
  const ways = page.getByRole("region", { name: "Ways to sign in" });
  const remove = async (name: string, answer: "Remove" | "Cancel") => {
    await ways.getByRole("listitem").filter({ hasText: name }).getByRole("button", { name: "Remove" }).click();
    const question = page.getByRole("dialog", { name: "Remove" });
    await question.getByRole("button", { name: answer, exact: true }).click();
    await question.waitFor({ state: "hidden" });
  };
  await remove("Old phone", "Cancel");
  expect(await means()).toEqual({ passkeys: 1, factors: 1 });
  await remove("Old phone", "Remove");
  await until("the passkey is gone", async () => (await means()).passkeys === 0);
  await remove("Second factor", "Remove");
  await ways.getByText(/^The address alone/).waitFor();
  expect(await means()).toEqual({ passkeys: 0, factors: 0 });
  expect(problems).toEqual([]);
});

browserTest("[AD70] records that refer to a user are counted, and are a click away", async () => {
  const { id } = await somebody();
  const { page } = await open(`/admin/users/${id}`);
  const records = page.getByRole("region", { name: "Records" });
  await records.getByRole("link", { name: "shared / secrets" }).waitFor();
  await records.getByRole("link", { name: "shared / reviews" }).click();
  await page.getByRole("heading", { level: 1, name: "reviews" }).waitFor();
  await page.getByRole("gridcell", { name: "good" }).waitFor();
  expect(await page.getByRole("row").count()).toBe(2);
});

browserTest("[AD69] [AD70] a key that may read one table sees that one, and no button", async () => {
  const { id } = await somebody();
  const { page, problems } = await open(`/admin/users/${id}`, { key: READER });
  await page.getByRole("link", { name: "shared / reviews" }).waitFor();
  expect(await page.getByRole("link", { name: "shared / secrets" }).count()).toBe(0);
  for (const name of ["End", "End sessions", "Remove", "Disable", "Delete", "Save"]) {
    expect({ name, count: await page.getByRole("button", { name, exact: true }).count() }).toEqual({ name, count: 0 });
  }
  expect(problems).toEqual([]);
});

browserTest("[AD26] a user who does not exist is said to be none", async () => {
  const { page } = await open("/admin/users/nobody");
  await page.getByRole("heading", { level: 1, name: "No such user" }).waitFor();
});

browserTest("[AD30] a user with long texts is accessible and fits", async () => {
  const { id } = await somebody();
  const metadata = { note: "x".repeat(600), list: Array.from({ length: 30 }, (_, n) => n) };
  const displayName = "A name that goes on ".repeat(4);
  await platform.service.patch(`/api/auth/admin/users/${id}`, { displayName, metadata });
  await inEveryView(async (options) => {
    const { page, context } = await open(`/admin/users/${id}`, options);
    await page.getByRole("region", { name: "Records" }).getByRole("link").first().waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflowOf(page)).toBe(0);
    await context.close();
  });
});
