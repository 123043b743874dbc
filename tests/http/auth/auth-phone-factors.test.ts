import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type HttpClient, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { enrol, mailedToken, PASSWORD, signUp, type Ticket, type Tokens, totpCode } from "./auth-support.ts";

// A phone as a second factor. Texts go to a server of the test.

setDefaultTimeout(20_000);

let receiver: Bun.Server<unknown>;
let platform: TestPlatform;
const sent: { to: string; code: string; text: string }[] = [];

const config = (more: { mfa?: string; phones?: string; perHour?: number } = {}): string => `
import { defineConfig, webhookSender } from "platform";
export default defineConfig({
  auth: {
    appName: "Film Club", emailPassword: true, mfa: { ${more.mfa ?? "totp: true, phone: true"} },
    phones: { send: webhookSender({ url: "${receiver.url}", secret: "${btoa("the secret of the texts, 32 bytes")}" }), countries: ["AT"], perHour: ${more.perHour ?? 1000}, ${more.phones ?? ""} },
  },
  audit: {},
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 }, signin: { requests: 100000, window: 60 }, phone: { requests: 100000, window: 60 } },
});
`;

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      const text: (typeof sent)[number] = JSON.parse(await request.text());
      sent.push(text);
      return new Response("ok");
    },
  });
  platform = await testPlatform({ config: config() });
});
afterAll(async () => {
  await receiver.stop(true);
  await platform.stop();
});

let numbers = 0;
const nextPhone = (): string => `+43660${String(3_234_000 + ++numbers)}`;
const textsTo = (phone: string) => sent.filter(({ to }) => to === phone);
/** Returns the code of the text that `ask` has sent. */
async function codeOf(phone: string, ask: () => Promise<{ status: number }>): Promise<string> {
  const before = textsTo(phone).length;
  expect((await ask()).status).toBe(200);
  await until("the text is sent", () => textsTo(phone).length > before);
  return textsTo(phone).at(-1)?.code ?? "";
}
const wrong = (...codes: string[]): string => ["000000", "111111", "222222"].find((one) => !codes.includes(one)) ?? "";
const post = <T = ErrorAnswer & Tokens & Ticket>(
  path: string,
  body: JsonObject | undefined,
  at: Pick<HttpClient, "post"> = platform,
) => at.post<T>(`/api/auth/${path}`, body);

interface Person {
  id: string;
  email: string;
  phone: string;
  user: HttpClient;
}
interface Enrolled extends Person {
  factorId: string;
  recoveryCodes: string[];
}

async function changeNumber(user: HttpClient, phone: string, code?: string): Promise<void> {
  const asked = await codeOf(phone, () =>
    post("change-phone", { newPhone: phone, ...(code === undefined ? {} : { code }) }, user),
  );
  expect((await post("verify-phone-change", { code: asked }, user)).status).toBe(200);
}
async function withNumber(at: TestPlatform = platform): Promise<Person> {
  const { user, accessToken } = await signUp(at);
  const phone = nextPhone();
  await changeNumber(at.as(accessToken), phone);
  return { id: user.id, email: String(user.email), phone, user: at.as(accessToken) };
}
async function enrolled(at: TestPlatform = platform): Promise<Enrolled> {
  const person = await withNumber(at);
  return { ...person, ...(await enrolPhone(person)) };
}
async function enrolPhone({ user, phone }: Person): Promise<Pick<Enrolled, "factorId" | "recoveryCodes">> {
  const kept = { factorId: "", recoveryCodes: [""] };
  const code = await codeOf(phone, async () => {
    const answer = await post<Pick<Enrolled, "factorId" | "recoveryCodes">>("mfa/phone/enroll", {}, user);
    Object.assign(kept, answer.body);
    return answer;
  });
  expect((await post("mfa/phone/verify", { factorId: kept.factorId, code }, user)).status).toBe(200);
  return kept;
}
const ticketOf = async ({ email }: Person, at: TestPlatform = platform): Promise<Ticket> =>
  (await post("signin", { email, password: PASSWORD }, at)).body;
const factorsOf = async ({ user }: Person) =>
  (await user.get<{ factors: { type: string; verified: boolean }[] }>("/api/auth/mfa/factors")).body.factors;
const typesOf = async (person: Person) => (await factorsOf(person)).map(({ type }) => type);
const phoneSignIn = async (phone: string, at: TestPlatform = platform) =>
  post("verify-phone", { phone, code: await codeOf(phone, () => post("signin/phone", { phone }, at)) }, at);

test("[AU420] the account's phone becomes a second factor by the code that is sent to it", async () => {
  const person = await withNumber();
  const { user, phone, email } = person;
  let factorId = "";
  const code = await codeOf(phone, async () => {
    const answer = await post<{ factorId: string; recoveryCodes: string[] }>("mfa/phone/enroll", {}, user);
    expect(Object.keys(answer.body).sort()).toEqual(["factorId", "recoveryCodes"]);
    expect(new Set(answer.body.recoveryCodes).size).toBe(10);
    factorId = answer.body.factorId;
    return answer;
  });
  expect(textsTo(phone).at(-1)?.text).toStartWith(`${code} confirms a change of how you sign in to Film Club.`);
  expect((await post("signin", { email, password: PASSWORD })).body.accessToken).toBeString();
  expect((await post("mfa/phone/verify", { factorId, code: wrong(code) }, user)).status).toBe(400);
  const stranger = await withNumber();
  expect((await post("mfa/phone/verify", { factorId, code }, stranger.user)).status).toBe(404);
  expect((await post("mfa/phone/verify", { factorId, code }, user)).status).toBe(200);
  expect(await ticketOf(person)).toMatchObject({ mfaRequired: true, factors: [{ id: factorId, type: "phone" }] });
  expect(await factorsOf(person)).toMatchObject([{ type: "phone", verified: true }]);
  expect((await post("mfa/phone/enroll", {}, user)).status).toBe(409);
  const events = await platform.service.get<{ events: { action: string; target: string; after: unknown }[] }>(
    "/api/admin/audit?action=factor.add",
  );
  expect(JSON.stringify(events.body)).toContain("phone factor");
});

test("[AU420] without a number, or where the config does not have it, there is none", async () => {
  const { accessToken } = await signUp(platform);
  expect((await post("mfa/phone/enroll", {}, platform.as(accessToken))).status).toBe(409);
  expect((await post("mfa/phone/enroll", {})).status).toBe(401);
  const without = await testPlatform({ config: config({ mfa: "totp: true" }) });
  try {
    const { user } = await withNumber(without);
    expect((await post("mfa/phone/enroll", {}, user)).status).toBe(404);
  } finally {
    await without.stop();
  }
});

test("[AU420] it stays beside TOTP: each of both completes a sign-in, and is removed alone", async () => {
  const person = await enrolled();
  const totp = await enrol(person.user);
  const ticket = await ticketOf(person);
  expect(ticket.factors.map(({ type }) => type).sort()).toEqual(["phone", "totp"]);
  expect((await post("mfa/verify", { mfaTicket: ticket.mfaTicket, code: totpCode(totp.secret) })).status).toBe(200);
  const { mfaTicket } = await ticketOf(person);
  const code = await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket }));
  expect((await post("mfa/verify", { mfaTicket, code })).status).toBe(200);
  const removed = await person.user.delete("/api/auth/mfa/totp", { password: PASSWORD });
  expect(removed.status).toBe(200);
  expect(await typesOf(person)).toEqual(["phone"]);
});

test("[AU421] a code completes the sign-in for which it was sent, once", async () => {
  const person = await enrolled();
  const [one, two] = [await ticketOf(person), await ticketOf(person)];
  const code = await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket: one.mfaTicket }));
  expect((await post("mfa/verify", { mfaTicket: two.mfaTicket, code })).status).toBe(400);
  const race = await Promise.all(
    Array.from({ length: 6 }, () => post("mfa/verify", { mfaTicket: one.mfaTicket, code })),
  );
  expect(race.filter(({ status }) => status === 200).length).toBe(1);
  expect((await post("mfa/phone/send", { mfaTicket: one.mfaTicket })).status).toBe(400);
  expect((await post("mfa/phone/send", { mfaTicket: "unknown" })).status).toBe(400);
  // A code that manages the factor completes no sign-in.
  const managing = await codeOf(person.phone, () => post("mfa/phone/code", undefined, person.user));
  expect((await post("mfa/verify", { mfaTicket: two.mfaTicket, code: managing })).status).toBe(400);
});

test("[AU421] further texts give a ticket no further attempts", async () => {
  const person = await enrolled();
  const { mfaTicket } = await ticketOf(person);
  let code = "";
  for (let count = 0; count < 5; count++) {
    if (count % 2 === 0) code = await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket }));
    expect((await post("mfa/verify", { mfaTicket, code: wrong(code) })).status).toBe(400);
  }
  expect((await post("mfa/verify", { mfaTicket, code })).status).toBe(400);
});

test("[AU421] a code to a number that the account has no more is wrong", async () => {
  const person = await enrolled();
  const { mfaTicket } = await ticketOf(person);
  const code = await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket }));
  await platform.service.patch(`/api/auth/admin/users/${person.id}`, { phone: nextPhone() });
  expect((await post("mfa/verify", { mfaTicket, code })).status).toBe(400);
});

test("[AU421] a recovery code completes a sign-in, and goes with its factor", async () => {
  const person = await enrolled();
  const [first = "", second = ""] = person.recoveryCodes;
  const recover = async (recoveryCode: string) =>
    (await post("mfa/recovery", { mfaTicket: (await ticketOf(person)).mfaTicket, recoveryCode })).status;
  expect(await recover(first)).toBe(200);
  expect(await recover(first)).toBe(400);
  const totp = await enrol(person.user);
  expect((await person.user.delete("/api/auth/mfa/phone", { password: PASSWORD })).status).toBe(200);
  expect(await recover(second)).toBe(400);
  expect(await recover(totp.recoveryCodes[0] ?? "")).toBe(200);
});

test("[AU422] a phone that signs in is no second factor of the same sign-in", async () => {
  const person = await enrolled();
  const refused = await phoneSignIn(person.phone);
  expect(refused.status).toBe(403);
  expect(JSON.stringify(refused.body)).not.toContain("mfaTicket");
  const totp = await enrol(person.user);
  const { body } = await phoneSignIn(person.phone);
  expect(body.factors.map(({ type }) => type)).toEqual(["totp"]);
  expect((await post("mfa/phone/send", { mfaTicket: body.mfaTicket })).status).toBe(400);
  expect((await post("mfa/verify", { mfaTicket: body.mfaTicket, code: totpCode(totp.secret) })).status).toBe(200);
});

test("[AU422] who has nothing else to sign in with cannot make the phone its own second factor", async () => {
  const phone = nextPhone();
  const { user: account, accessToken } = (await phoneSignIn(phone)).body;
  const person = { id: account.id, email: "", phone, user: platform.as(accessToken) };
  const { user } = person;
  const refused = await post("mfa/phone/enroll", {}, user);
  expect([refused.status, refused.body.message]).toEqual([
    409,
    "The phone is the only way to sign in to this account, and cannot be its second factor too",
  ]);
  expect(await typesOf(person)).toEqual([]);
  // With another factor a sign-in by phone can be completed: that one stays as long as the phone is a factor.
  const totp = await enrol(user);
  await enrolPhone(person);
  expect((await phoneSignIn(phone)).body.factors.map(({ type }) => type)).toEqual(["totp"]);
  const left = await user.delete<ErrorAnswer>("/api/auth/mfa/totp", { code: totpCode(totp.secret, 1) });
  expect([left.status, await typesOf(person)]).toEqual([409, ["totp", "phone"]]);
  const code = await codeOf(phone, () => post("mfa/phone/code", undefined, user));
  expect((await user.delete("/api/auth/mfa/phone", { code })).status).toBe(200);
  expect((await user.delete("/api/auth/mfa/totp", { code: totpCode(totp.secret, 1) })).status).toBe(200);
});

test("[AU422] a code that another sign-in was sent completes none that the phone has begun", async () => {
  const person = await enrolled();
  await enrol(person.user);
  const other = await ticketOf(person);
  const code = await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket: other.mfaTicket }));
  const { body } = await phoneSignIn(person.phone);
  expect((await post("mfa/verify", { mfaTicket: body.mfaTicket, code })).status).toBe(400);
});

test("[AU423] a code that is sent to the owner removes the factor, and leaves the number", async () => {
  const person = await enrolled();
  const { user, phone } = person;
  expect((await user.delete("/api/auth/mfa/phone", {})).status).toBe(400);
  const code = await codeOf(phone, () => post("mfa/phone/code", undefined, user));
  expect((await user.delete("/api/auth/mfa/phone", { code: wrong(code) })).status).toBe(400);
  expect((await user.delete("/api/auth/mfa/phone", { code })).status).toBe(200);
  expect(await typesOf(person)).toEqual([]);
  expect((await user.delete("/api/auth/mfa/phone", { code })).status).toBe(404);
  expect((await post("mfa/phone/code", undefined, user)).status).toBe(409);
  expect((await user.get<{ user: JsonObject }>("/api/auth/me")).body.user["phone"]).toBe(phone);
});

test("[AU424] a change of the number needs a code of a factor, and takes the factor along", async () => {
  const person = await enrolled();
  const { user, phone } = person;
  const next = nextPhone();
  for (const newPhone of [next, null]) {
    const missing = await post("change-phone", { newPhone }, user);
    expect(missing).toMatchObject({ status: 400, body: { data: { code: { code: "required" } } } });
  }
  expect((await post("change-phone", { newPhone: null, code: "000000" }, user)).status).toBe(400);
  expect(textsTo(next)).toEqual([]);
  const code = await codeOf(phone, () => post("mfa/phone/code", undefined, user));
  await changeNumber(user, next, code);
  const { mfaTicket } = await ticketOf(person);
  const second = await codeOf(next, () => post("mfa/phone/send", { mfaTicket }));
  expect((await post("mfa/verify", { mfaTicket, code: second })).status).toBe(200);
  const totp = await enrol(user);
  await changeNumber(user, nextPhone(), totpCode(totp.secret));
  const [recovery = ""] = person.recoveryCodes;
  await changeNumber(user, nextPhone(), recovery);
});

test("[AU424] a change that was asked for before the factor counted is void", async () => {
  const person = await withNumber();
  const next = nextPhone();
  const code = await codeOf(next, () => post("change-phone", { newPhone: next }, person.user));
  await enrolPhone(person);
  expect((await post("verify-phone-change", { code }, person.user)).status).toBe(400);
});

test("[AU425] the factor goes with the number", async () => {
  const byOwner = await enrolled();
  await post("change-phone", { newPhone: null, code: byOwner.recoveryCodes[0] ?? "" }, byOwner.user);
  const byAdministrator = await enrolled();
  await platform.service.patch(`/api/auth/admin/users/${byAdministrator.id}`, { phone: null });
  const reset = await enrolled();
  await platform.service.delete(`/api/auth/admin/users/${reset.id}/mfa`);
  for (const person of [byOwner, byAdministrator, reset]) {
    expect((await ticketOf(person)).mfaRequired).toBeUndefined();
    expect(await typesOf(person)).toEqual([]);
  }
  // Without a factor nothing keeps the number from being the factor again.
  await enrolPhone(reset);
});

test("[AU425] a reset removes it unless keepPhone is true; the owner of an unverified address gets none in any case", async () => {
  for (const [isVerified, keepPhone, isKept] of [
    [true, false, false],
    [true, true, true],
    [false, true, false],
  ] as const) {
    const person = await enrolled();
    const { email } = person;
    if (isVerified) await platform.service.patch(`/api/auth/admin/users/${person.id}`, { emailVerified: true });
    await post("request-password-reset", { email });
    const token = mailedToken(platform, email);
    expect((await post("reset-password", { token, newPassword: PASSWORD, keepPhone })).status).toBe(200);
    expect((await ticketOf(person)).mfaRequired).toBe(isKept ? true : (undefined as never));
  }
});

test("[AU426] who asks for codes for the number, or guesses at them, keeps its owner from nothing", async () => {
  const person = await enrolled();
  const { phone, user } = person;
  for (let count = 0; count < 5; count++) await codeOf(phone, () => post("signin/phone", { phone }));
  expect((await post("signin/phone", { phone })).status).toBe(429);
  const code = textsTo(phone).at(-1)?.code ?? "";
  for (let count = 0; count < 5; count++) await post("verify-phone", { phone, code: wrong(code) });
  const { mfaTicket } = await ticketOf(person);
  const second = await codeOf(phone, () => post("mfa/phone/send", { mfaTicket }));
  expect((await post("mfa/verify", { mfaTicket, code: second })).status).toBe(200);
  // The first of five texts that manage the factor has enrolled it.
  for (let count = 1; count < 5; count++) await codeOf(phone, () => post("mfa/phone/code", undefined, user));
  expect((await post("mfa/phone/code", undefined, user)).status).toBe(429);
  const again = await ticketOf(person);
  await codeOf(phone, () => post("mfa/phone/send", { mfaTicket: again.mfaTicket }));
});

test("[AU426] texts of an hour for sign-ins leave those for second factors alone", async () => {
  const hourly = await testPlatform({ config: config({ perHour: 1 }) });
  try {
    const person = await enrolled(hourly);
    const other = nextPhone();
    await codeOf(other, () => post("signin/phone", { phone: other }, hourly));
    expect((await post("signin/phone", { phone: nextPhone() }, hourly)).status).toBe(429);
    const { mfaTicket } = await ticketOf(person, hourly);
    await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket }, hourly));
    expect((await post("mfa/phone/send", { mfaTicket }, hourly)).status).toBe(429);
  } finally {
    await hourly.stop();
  }
});

test("[AU427] signIn: false leaves second factors, and the public configuration says which there are", async () => {
  const changing = await testPlatform({ config: config({ phones: "signIn: false," }) });
  try {
    const person = await enrolled(changing);
    const { mfaTicket } = await ticketOf(person, changing);
    const code = await codeOf(person.phone, () => post("mfa/phone/send", { mfaTicket }, changing));
    expect((await post("mfa/verify", { mfaTicket, code }, changing)).status).toBe(200);
    const shown = await changing.get<{ auth: JsonObject }>("/api/config");
    expect(shown.body.auth).toMatchObject({ phone: false, mfaPhone: true });
  } finally {
    await changing.stop();
  }
});
