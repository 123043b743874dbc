import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { lastMail, mailedToken, nextEmail, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

// Texts are sent by `webhookSender` to a server of the test. Numbers of France are refused, those that begin with +4366499 too; the
// rule of sign-ups closes +436648.

interface Sent {
  to: string;
  code: string;
  text: string;
}
const SECRET = Buffer.from("the secret of the texts, 32 bytes").toString("base64");
const SUPPORT_KEY = "a key of the support, long enough".replaceAll(" ", "-");
const sent: Sent[] = [];
const signatures: boolean[] = [];
let receiver: Bun.Server<unknown>;
let answer: () => Response | Promise<Response> = () => new Response("ok");
let platform: TestPlatform;

const config = (
  more: { auth?: string; limits?: string; phones?: string } = {},
): string => `import { defineConfig, webhookSender } from "platform";
export default defineConfig({
  auth: {
    emailPassword: true, anonymous: true, appName: "Film Club", ${more.auth ?? ""}
    signup: (facts) => !facts.phone?.startsWith("+436648"),
    phones: { send: webhookSender({ url: "${receiver.url}texts", secret: "${SECRET}" }), countries: ["AT", "DE"], refuse: ["+4366499"], perHour: 1000, ${more.phones ?? ""} },
  },
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 }, phone: { requests: 100000, window: 60 }, ${more.limits ?? ""} },
  serviceKeys: { support: { key: "${SUPPORT_KEY}", scopes: ["auth:admin:*:read", "auth:admin:*:write"] } },
  databases: { shared: { tables: { seen: { schema: { phone: { type: "string" } }, access: { insert: true, read: true },
    hooks: { beforeInsert: (auth) => ({ phone: auth === null ? "nobody" : (auth.phone ?? "none") }) } } } } },
});
`;

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      const body = await request.text();
      const { headers } = request;
      const base = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
      const signature = createHmac("sha256", Buffer.from(SECRET, "base64")).update(base).digest("base64");
      signatures.push(headers.get("webhook-signature") === `v1,${signature}`);
      sent.push(JSON.parse(body));
      return answer();
    },
  });
  platform = await testPlatform({ config: config() });
});
afterAll(async () => {
  await receiver.stop(true);
  await platform.stop();
});

let numbers = 0;
const nextPhone = (): string => `+43660${String(1_234_000 + ++numbers)}`;
const post = <T = ErrorAnswer & Tokens>(path: string, body: JsonObject, to: Pick<TestPlatform, "post"> = platform) =>
  to.post<T>(`/api/auth/${path}`, body);
const textsTo = (phone: string): Sent[] => sent.filter(({ to }) => to === phone);
async function codeTo(phone: string, from = 0): Promise<string> {
  await until("the text is sent", () => textsTo(phone).length > from);
  return textsTo(phone).at(-1)?.code ?? "";
}
async function askCode(phone: string, at: Pick<TestPlatform, "post"> = platform): Promise<string> {
  const before = textsTo(phone).length;
  expect(await post("signin/phone", { phone }, at)).toMatchObject({ status: 200, body: { ok: true } });
  return codeTo(phone, before);
}
async function signInByPhone(phone: string): Promise<Tokens> {
  const answer = await post("verify-phone", { phone, code: await askCode(phone) });
  expect(answer.status).toBe(200);
  return answer.body;
}
const wrong = (code: string): string => (code === "000000" ? "111111" : "000000");
const as = ({ accessToken }: Tokens) => platform.as(accessToken);
const own = async (tokens: Tokens): Promise<JsonObject> =>
  (await as(tokens).get<{ user: JsonObject }>("/api/auth/me")).body.user;

describe("signing in", () => {
  test("[AU370] a code makes an account, and then signs in to it", async () => {
    const phone = nextPhone();
    const first = await signInByPhone(phone);
    expect(first.user).toMatchObject({ email: null, emailVerified: false, isAnonymous: false, phone });
    const second = await signInByPhone(phone);
    expect(second.user.id).toBe(first.user.id);
    expect(textsTo(phone)[0]?.text).toBe(
      `${textsTo(phone)[0]?.code} is your code to sign in to Film Club. Nobody will ever ask you for it.`,
    );
    expect(signatures.every(Boolean)).toBe(true);
    expect(await own(second)).toMatchObject({ phone });
    const seen = await as(second).post<{ phone: string }>("/api/db/shared/tables/seen", {});
    expect(seen.body.phone).toBe(phone);
  });

  test("[AU370] numbers have one form, however they are written", async () => {
    const phone = nextPhone();
    const code = await askCode(phone);
    const written = `+43 (660) ${phone.slice(6, 9)}-${phone.slice(9)}`;
    expect(await post("verify-phone", { phone: written, code })).toMatchObject({
      status: 200,
      body: { user: { phone } },
    });
  });

  test.each([
    ["0660 1234567", "without the country"],
    ["+43660", "too short"],
    ["+43112", "an emergency number"],
    ["+33612345678", "of another country"],
    ["+436649912345", "with a beginning that is refused"],
    ["+43660ABC4567", "with letters"],
    ["+436601234567;ext=5", "with an extension"],
    ["tel:+436601234567", "with a scheme"],
  ])("[AU371] %s, %s, is 400 and named, and nothing is sent", async (phone) => {
    const before = sent.length;
    const refused = await post("signin/phone", { phone });
    expect(refused).toMatchObject({ status: 400, body: { data: { phone: { code: "invalid_value" } } } });
    expect(sent.length).toBe(before);
  });

  test("[AU372] a code is for its number alone, once, and a new one replaces it", async () => {
    const [phone, other] = [nextPhone(), nextPhone()];
    const first = await askCode(phone);
    const second = await askCode(phone);
    await askCode(other);
    if (first !== second) expect((await post("verify-phone", { phone, code: first })).status).toBe(400);
    if (textsTo(other)[0]?.code !== second)
      expect((await post("verify-phone", { phone: other, code: second })).status).toBe(400);
    const race = await Promise.all(Array.from({ length: 8 }, () => post("verify-phone", { phone, code: second })));
    expect(race.filter(({ status }) => status === 200).length).toBe(1);
  });

  test("[AU372] the fifth wrong code ends it", async () => {
    const phone = nextPhone();
    const code = await askCode(phone);
    for (let count = 0; count < 5; count++) {
      const refused = await post("verify-phone", { phone, code: wrong(code) });
      expect(refused).toMatchObject({ status: 400, body: { data: { code: { code: "invalid_value" } } } });
    }
    expect((await post("verify-phone", { phone, code })).status).toBe(400);
  });

  test("[AU373] who may not sign up is told so by the right code alone, and sent nothing", async () => {
    const before = sent.length;
    expect(await post("signin/phone", { phone: "+436648123456" })).toMatchObject({ status: 200, body: { ok: true } });
    await Bun.sleep(50);
    expect(sent.length).toBe(before);
    // The control: an open number is sent one by the same request.
    await askCode(nextPhone());
  });

  test("[AU373] a disabled account is told so by the right code alone", async () => {
    const phone = nextPhone();
    const { user } = await signInByPhone(phone);
    await platform.service.patch(`/api/auth/admin/users/${user.id}`, { disabled: true });
    const code = await askCode(phone);
    expect((await post("verify-phone", { phone, code: wrong(code) })).status).toBe(400);
    expect((await post("verify-phone", { phone, code })).status).toBe(403);
  });

  test("[AU374] a sender that fails or hangs changes neither answer nor time", async () => {
    const phone = nextPhone();
    answer = () => new Response("no", { status: 500 });
    expect((await post("signin/phone", { phone })).status).toBe(200);
    const { promise, resolve } = Promise.withResolvers<Response>();
    answer = () => promise;
    // Answered before the sender is, which ends after it alone.
    expect((await post("signin/phone", { phone })).status).toBe(200);
    resolve(new Response("late"));
    answer = () => new Response("ok");
  });

  test("[AU374] a drill sends no text", async () => {
    const drill = await testPlatform({ config: config(), args: ["--drill"] });
    try {
      const before = sent.length;
      expect((await post("signin/phone", { phone: nextPhone() }, drill)).status).toBe(200);
      await Bun.sleep(50);
      expect(sent.length).toBe(before);
    } finally {
      await drill.stop();
    }
  });
});

describe("bounds", () => {
  test("[AU375] a number is sent five texts in ten minutes; others, and its owner's change, are not concerned", async () => {
    const phone = nextPhone();
    for (let count = 0; count < 5; count++) await askCode(phone);
    const refused = await post("signin/phone", { phone });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await askCode(nextPhone());
    const owner = await signUp(platform);
    expect((await as(owner).post("/api/auth/change-phone", { newPhone: phone })).status).toBe(200);
  });

  test("[AU375] the texts of an hour and of a client have bounds", async () => {
    const hourly = await testPlatform({ config: config({ phones: "perHour: 2," }) });
    const perClient = await testPlatform({ config: config({ limits: "phone: { requests: 2, window: 3600 }," }) });
    try {
      for (const at of [hourly, perClient]) {
        await askCode(nextPhone(), at);
        // A request that is refused for its number is no text.
        expect((await post("signin/phone", { phone: "+43" }, at)).status).toBe(400);
        await askCode(nextPhone(), at);
        expect((await post("signin/phone", { phone: nextPhone() }, at)).status).toBe(429);
      }
      const owner = await signUp(hourly);
      const change = await hourly.as(owner.accessToken).post("/api/auth/change-phone", { newPhone: nextPhone() });
      expect(change.status).toBe(200);
    } finally {
      await hourly.stop();
      await perClient.stop();
    }
  });
});

describe("the number of an account", () => {
  test("[AU377] a code gives the account its number; the next sign-in is by it", async () => {
    const phone = nextPhone();
    const owner = await signUp(platform);
    expect((await as(owner).post("/api/auth/change-phone", { newPhone: phone })).status).toBe(200);
    const code = await codeTo(phone);
    const stranger = await signUp(platform);
    expect((await as(stranger).post("/api/auth/verify-phone-change", { code })).status).toBe(400);
    expect((await as(owner).post("/api/auth/verify-phone-change", { code })).status).toBe(200);
    expect((await as(owner).post("/api/auth/verify-phone-change", { code })).status).toBe(400);
    expect((await signInByPhone(phone)).user.id).toBe(owner.user.id);
  });

  test("[AU377] a number that another account has is told by the right code alone", async () => {
    const phone = nextPhone();
    const holder = await signInByPhone(phone);
    const other = await signUp(platform);
    const before = textsTo(phone).length;
    expect((await as(other).post("/api/auth/change-phone", { newPhone: phone })).status).toBe(200);
    const code = await codeTo(phone, before);
    const taken = await as(other).post<ErrorAnswer>("/api/auth/verify-phone-change", { code });
    expect(taken).toMatchObject({ status: 409, body: { data: { newPhone: { code: "not_unique" } } } });
    expect((await signInByPhone(phone)).user.id).toBe(holder.user.id);
  });

  test("[AU377] an anonymous user gets an account by it, unless sign-up is closed", async () => {
    const guest = await post("signin/anonymous", {});
    const client = platform.as(guest.body.accessToken);
    expect((await client.post("/api/auth/change-phone", { newPhone: "+436648123457" })).status).toBe(403);
    const phone = nextPhone();
    expect((await client.post("/api/auth/change-phone", { newPhone: phone })).status).toBe(200);
    expect((await client.post("/api/auth/verify-phone-change", { code: await codeTo(phone) })).status).toBe(200);
    expect(await own(guest.body)).toMatchObject({ phone, isAnonymous: false });
  });

  test("[AU378] null removes the number, unless it is the only way to sign in", async () => {
    const phone = nextPhone();
    const only = await signInByPhone(phone);
    expect((await as(only).post("/api/auth/change-phone", { newPhone: null })).status).toBe(409);
    const both = await signUp(platform);
    const second = nextPhone();
    await as(both).post("/api/auth/change-phone", { newPhone: second });
    await as(both).post("/api/auth/verify-phone-change", { code: await codeTo(second) });
    expect((await as(both).post("/api/auth/change-phone", { newPhone: null })).status).toBe(200);
    expect(await own(both)).toMatchObject({ phone: null });
  });

  test("[AU379] a reset removes the number unless keepPhone is true", async () => {
    for (const keepPhone of [false, true]) {
      const email = nextEmail();
      const owner = await signUp(platform, email);
      const verification = await as(owner).post("/api/auth/request-email-verification", {});
      expect(verification.status).toBe(200);
      await post("verify-email", { token: mailedToken(platform, email) });
      const phone = nextPhone();
      await as(owner).post("/api/auth/change-phone", { newPhone: phone });
      await as(owner).post("/api/auth/verify-phone-change", { code: await codeTo(phone) });
      await post("request-password-reset", { email });
      expect(lastMail(platform, email).kind).toBe("passwordReset");
      const token = mailedToken(platform, email);
      const reset = await post("reset-password", { token, newPassword: `${PASSWORD} 2`, keepPhone });
      expect(reset.status).toBe(200);
      const shown = await platform.service.get<JsonObject>(`/api/auth/admin/users/${owner.user.id}`);
      expect(shown.body["phone"]).toBe(keepPhone ? phone : null);
    }
  });

  test("[AU379] the owner of an unverified address gets an account without the number, keepPhone or not", async () => {
    const email = nextEmail();
    const impostor = await signUp(platform, email);
    const phone = nextPhone();
    await as(impostor).post("/api/auth/change-phone", { newPhone: phone });
    await as(impostor).post("/api/auth/verify-phone-change", { code: await codeTo(phone) });
    await post("request-password-reset", { email });
    const token = mailedToken(platform, email);
    expect((await post("reset-password", { token, newPassword: `${PASSWORD} 3`, keepPhone: true })).status).toBe(200);
    const entered = await signInByPhone(phone);
    expect(entered.user.id).not.toBe(impostor.user.id);
  });
});

test("[AU380] an administrator sets and removes a number, with the scope for credentials", async () => {
  const owner = await signUp(platform);
  const phone = nextPhone();
  const path = `/api/auth/admin/users/${owner.user.id}`;
  const refused = await platform.withKey(SUPPORT_KEY).patch(path, { phone, displayName: "Ann" });
  expect(refused.status).toBe(403);
  expect((await platform.service.get<JsonObject>(path)).body).toMatchObject({ phone: null, displayName: null });
  expect(await platform.service.patch(path, { phone })).toMatchObject({ status: 200, body: { phone } });
  expect((await signInByPhone(phone)).user.id).toBe(owner.user.id);
  const other = await signUp(platform);
  const taken = await platform.service.patch(`/api/auth/admin/users/${other.user.id}`, { phone });
  expect(taken).toMatchObject({ status: 409, body: { data: { phone: { code: "not_unique" } } } });
  expect((await platform.service.patch(path, { phone: "12" })).status).toBe(400);
  expect(await platform.service.patch(path, { phone: null })).toMatchObject({ status: 200, body: { phone: null } });
  expect((await signInByPhone(phone)).user.id).not.toBe(owner.user.id);
});

test("[AU381] with requireVerifiedEmail a number suffices without an address, and not beside an unverified one", async () => {
  const strict = await testPlatform({ config: config({ auth: "requireVerifiedEmail: true," }) });
  try {
    const phone = nextPhone();
    expect((await post("verify-phone", { phone, code: await askCode(phone, strict) }, strict)).status).toBe(200);
    const users = [{ email: nextEmail(), password: PASSWORD }];
    const created = await strict.service.post<{ results: { id: string }[] }>("/api/admin/auth/users/import", { users });
    const second = nextPhone();
    await strict.service.patch(`/api/auth/admin/users/${created.body.results[0]?.id}`, { phone: second });
    const refused = await post("verify-phone", { phone: second, code: await askCode(second, strict) }, strict);
    expect(refused).toMatchObject({ status: 403, body: { message: "Email not verified" } });
  } finally {
    await strict.stop();
  }
});

test("[AU382] signIn: false leaves the change alone; without auth.phones there is neither", async () => {
  const changing = await testPlatform({ config: config({ phones: "signIn: false," }) });
  const without = await testPlatform({ config: { auth: { emailPassword: true } } });
  try {
    for (const [at, phone] of [
      [changing, false],
      [without, false],
      [platform, true],
    ] as const) {
      const shown = await at.get<{ auth: { phone: boolean } }>("/api/config");
      expect(shown.body.auth.phone).toBe(phone);
    }
    expect((await post("signin/phone", { phone: nextPhone() }, changing)).status).toBe(404);
    expect((await post("verify-phone", { phone: nextPhone(), code: "123456" }, changing)).status).toBe(404);
    const owner = await signUp(changing);
    const client = changing.as(owner.accessToken);
    expect((await client.post("/api/auth/change-phone", { newPhone: nextPhone() })).status).toBe(200);
    const user = without.as((await signUp(without)).accessToken);
    for (const [path, body] of [
      ["change-phone", { newPhone: null }],
      ["verify-phone-change", { code: "123456" }],
    ] as const) {
      expect((await user.post(`/api/auth/${path}`, body)).status).toBe(404);
    }
  } finally {
    await changing.stop();
    await without.stop();
  }
});

test("[AU374] twilioSender posts the text to Twilio, and follows no redirect", async () => {
  const requests: { path: string; authorization: string | null; form: { [name: string]: string } }[] = [];
  const twilio = Bun.serve({
    port: 0,
    async fetch(request) {
      const form = Object.fromEntries(new URLSearchParams(await request.text()));
      requests.push({ path: new URL(request.url).pathname, authorization: request.headers.get("authorization"), form });
      return Response.redirect(`${receiver.url}elsewhere`, 307);
    },
  });
  const texted = await testPlatform({
    config: `import { defineConfig, twilioSender } from "platform";
export default defineConfig({ auth: { phones: { countries: "all",
  send: twilioSender({ accountSid: "AC1", authToken: "token", from: "+43720123456", endpoint: "${twilio.url.origin}" }),
} } });
`,
  });
  try {
    const [before, phone] = [sent.length, "+33612345678"];
    expect((await post("signin/phone", { phone }, texted)).status).toBe(200);
    await until("the text is sent", () => requests.length > 0);
    expect(requests[0]).toEqual({
      path: "/2010-04-01/Accounts/AC1/Messages.json",
      authorization: `Basic ${btoa("AC1:token")}`,
      form: { To: phone, From: "+43720123456", Body: expect.stringMatching(/^\d{6} is your code to sign in/) },
    });
    await Bun.sleep(50);
    expect(sent.length).toBe(before);
  } finally {
    await twilio.stop(true);
    await texted.stop();
  }
});
