import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { lastMail, nextEmail, PASSWORD, signUp, totpCode } from "./auth-support.ts";
import { alertOf, noticeOf, PageVisitor, pkce, type Shown } from "./pages-visitor.ts";

// Phones on the pages, without JavaScript.

let receiver: Bun.Server<unknown>;
let platform: TestPlatform;
const sent: { to: string; code: string }[] = [];

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      const text: (typeof sent)[number] = JSON.parse(await request.text());
      sent.push(text);
      return new Response("ok");
    },
  });
  platform = await testPlatform({
    config: `import { defineConfig, webhookSender } from "platform";
export default defineConfig({
  auth: {
    mfa: { totp: true, phone: true }, pages: {}, redirectUrls: ["https://app.example.com/*"],
    phones: { send: webhookSender({ url: "${receiver.url}", secret: "${btoa("the secret of the texts, 32 bytes")}" }), countries: ["AT"], perHour: 1000 },
  },
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 }, phone: { requests: 100000, window: 60 } },
});
`,
  });
});
afterAll(async () => {
  await receiver.stop(true);
  await platform.stop();
});

let numbers = 0;
const nextPhone = (): string => `+43660${String(4_234_000 + ++numbers)}`;
const textsTo = (phone: string): number => sent.filter(({ to }) => to === phone).length;
/** Returns the page, and the code of the text that asking for it has sent. */
async function texted(phone: string, ask: () => Promise<Shown>): Promise<{ page: Shown; code: string }> {
  const before = textsTo(phone);
  const page = await ask();
  await until("the text is sent", () => textsTo(phone) > before);
  return { page, code: sent.findLast(({ to }) => to === phone)?.code ?? "" };
}
const wrong = (code: string): string => (code === "000000" ? "111111" : "000000");
const act = (visitor: PageVisitor, action: string, fields: Record<string, string> = {}): Promise<Shown> =>
  visitor.send("/auth/account", { action, ...fields });

async function signedIn(): Promise<{ visitor: PageVisitor; email: string }> {
  const { user } = await signUp(platform, nextEmail());
  const email = user.email ?? "";
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/sign-in", { email, password: PASSWORD });
  return { visitor, email };
}
async function addNumber(visitor: PageVisitor, phone: string): Promise<void> {
  const { code } = await texted(phone, () => act(visitor, "phone", { newPhone: phone }));
  expect(noticeOf(await act(visitor, "phone-verify", { phoneCode: code }))).toBe("Saved.");
}
/** Turns the second factor on. Returns its recovery codes. */
async function turnOn(visitor: PageVisitor, phone: string): Promise<string[]> {
  const { page, code } = await texted(phone, () => act(visitor, "phone-factor-begin"));
  const factorId = /name="factorId" value="([^"]+)"/.exec(page.text)?.[1] ?? "";
  const recovery = [...page.text.matchAll(/<li><code>([^<]+)<\/code>/g)].map(([, found = ""]) => found);
  expect(recovery.length).toBe(10);
  const refused = await act(visitor, "phone-factor-verify", { factorId, factorCode: wrong(code) });
  expect(alertOf(refused)).toBe("The code is wrong, or has been used already.");
  expect(noticeOf(await act(visitor, "phone-factor-verify", { factorId, factorCode: code }))).toBe("Saved.");
  return recovery;
}

test("[AU430] a number and a code sign in, and wrong ones are named", async () => {
  const phone = nextPhone();
  const visitor = new PageVisitor(platform);
  expect((await visitor.open("/auth/sign-in")).text).toContain('href="/auth/sign-in?with=phone"');
  const asked = await visitor.open("/auth/sign-in?with=phone");
  expect(asked.text).toContain('name="phone" type="tel" autocomplete="tel"');
  const refused = await visitor.send("/auth/sign-in", { by: "phone", phone: "0660 <1>" });
  expect(refused.status).toBe(400);
  expect(alertOf(refused)).toBe("This is not a phone number to which we can send a code.");
  expect(refused.text).toContain('value="0660 &lt;1&gt;"');
  expect((await visitor.open("/auth/sign-in?with=phone-code")).path).toBe("/auth/sign-in?with=phone");
  const { page, code } = await texted(phone, () => visitor.send("/auth/sign-in", { by: "phone", phone }));
  expect(page.path).toBe("/auth/sign-in?with=phone-code");
  expect(page.text).toContain(`Enter the code that we have sent to ${phone}.`);
  expect(page.text).toContain('autocomplete="one-time-code"');
  const mistyped = await visitor.send("/auth/sign-in", { by: "phone", code: wrong(code) });
  expect(alertOf(mistyped)).toBe("The code is wrong, or has been used already.");
  const account = await visitor.send("/auth/sign-in", { by: "phone", code: ` ${code.slice(0, 3)} ${code.slice(3)}` });
  expect(account.path).toBe("/auth/account");
  expect(account.text).toContain(phone);
});

test("[AU430] an application gets its code after a sign-in by phone", async () => {
  const phone = nextPhone();
  const visitor = new PageVisitor(platform);
  const { challenge, verifier } = pkce();
  const query = new URLSearchParams({ return_to: "https://app.example.com/home", code_challenge: challenge });
  await visitor.open(`/auth/sign-in?${query}`);
  const { code } = await texted(phone, () => visitor.send("/auth/sign-in", { by: "phone", phone }));
  const { left } = await visitor.send("/auth/sign-in", { by: "phone", code });
  const redeemed = await platform.post<{ user: { phone: string } }>("/api/auth/pages/redeem", {
    code: new URL(left ?? "").searchParams.get("code") ?? "",
    codeVerifier: verifier,
  });
  expect(redeemed.body.user.phone).toBe(phone);
});

test("[AU430] in German, where that is preferred", async () => {
  const visitor = new PageVisitor(platform, { "accept-language": "de" });
  const phone = nextPhone();
  expect((await visitor.open("/auth/sign-in?with=phone")).text).toContain("Code per SMS senden");
  const { page } = await texted(phone, () => visitor.send("/auth/sign-in", { by: "phone", phone }));
  expect(page.text).toContain(`Geben Sie den Code ein, den wir an ${phone} gesendet haben.`);
});

test("[AU431] the account page adds, changes and removes the number", async () => {
  const { visitor } = await signedIn();
  const [phone, next] = [nextPhone(), nextPhone()];
  expect((await visitor.open("/auth/account")).text).toContain("Your account has no phone number.");
  const refused = await act(visitor, "phone", { newPhone: "12" });
  expect(alertOf(refused)).toBe("This is not a phone number to which we can send a code.");
  await addNumber(visitor, phone);
  expect((await visitor.open("/auth/account")).text).toContain(`<p>${phone}</p>`);
  const { page, code } = await texted(next, () => act(visitor, "phone", { newPhone: next }));
  expect(noticeOf(page)).toBe(`Enter the code that we have sent to ${next}.`);
  expect(alertOf(await act(visitor, "phone-verify", { phoneCode: wrong(code) }))).toBe(
    "The code is wrong, or has been used already.",
  );
  expect((await act(visitor, "phone-verify", { phoneCode: code })).text).toContain(`<p>${next}</p>`);
  expect((await act(visitor, "phone", { remove: "1" })).text).toContain("Your account has no phone number.");
});

test("[AU431] a number that another account has is told after its code alone", async () => {
  const phone = nextPhone();
  await addNumber((await signedIn()).visitor, phone);
  const { visitor } = await signedIn();
  const { code } = await texted(phone, () => act(visitor, "phone", { newPhone: phone }));
  expect(alertOf(await act(visitor, "phone-verify", { phoneCode: code }))).toBe("Another account has this number.");
});

test("[AU431] the phone becomes a second factor, is asked for at the next sign-in, and is turned off", async () => {
  const { visitor, email } = await signedIn();
  const phone = nextPhone();
  await addNumber(visitor, phone);
  const recovery = await turnOn(visitor, phone);
  const again = new PageVisitor(platform);
  // There is nothing to choose: the code is sent at once.
  const { page, code } = await texted(phone, () => again.send("/auth/sign-in", { email, password: PASSWORD }));
  expect(page.path).toBe("/auth/factor");
  expect(page.text).toContain("Enter the code that we have sent to your phone.");
  expect(alertOf(await again.send("/auth/factor", { by: "phone", code: wrong(code) }))).not.toBeNull();
  const { code: second } = await texted(phone, () => again.send("/auth/factor", { by: "text" }));
  expect((await again.send("/auth/factor", { by: "phone", code: second })).path).toBe("/auth/account");
  const lost = new PageVisitor(platform);
  await texted(phone, () => lost.send("/auth/sign-in", { email, password: PASSWORD }));
  expect((await lost.send("/auth/factor", { recovery: recovery[0] ?? "" })).path).toBe("/auth/account");
  // By the phone alone nobody gets in.
  const byPhone = new PageVisitor(platform);
  const begun = await texted(phone, () => byPhone.send("/auth/sign-in", { by: "phone", phone }));
  const refused = await byPhone.send("/auth/sign-in", { by: "phone", code: begun.code });
  expect(alertOf(refused)).toBe("Your phone is your second step. Sign in in another way first.");
  expect(byPhone.isSignedIn).toBe(false);

  const { code: removing } = await texted(phone, () => act(visitor, "phone-text"));
  expect(alertOf(await act(visitor, "phone-factor-remove", { factorCode: wrong(removing) }))).not.toBeNull();
  expect(noticeOf(await act(visitor, "phone-factor-remove", { factorCode: removing }))).toBe("Saved.");
  expect((await new PageVisitor(platform).send("/auth/sign-in", { email, password: PASSWORD })).path).toBe(
    "/auth/account",
  );
});

test("[AU430] beside an app the user chooses, and nothing is sent without a press", async () => {
  const { visitor, email } = await signedIn();
  const phone = nextPhone();
  await addNumber(visitor, phone);
  await turnOn(visitor, phone);
  const begun = await act(visitor, "factor-begin");
  const secret = /<p><code>([A-Z2-7]+)<\/code>/.exec(begun.text)?.[1] ?? "";
  const factorId = /name="factorId" value="([^"]+)"/.exec(begun.text)?.[1] ?? "";
  await act(visitor, "factor-verify", { factorId, code: totpCode(secret, -1) });
  const before = textsTo(phone);
  const other = new PageVisitor(platform);
  const asked = await other.send("/auth/sign-in", { email, password: PASSWORD });
  expect(asked.text).toContain("Enter the code that your authenticator app shows.");
  const chosen = await other.open("/auth/factor?with=phone");
  expect(chosen.text).toContain("Press the button, and we send a code to your phone.");
  expect(textsTo(phone)).toBe(before);
  const { page, code } = await texted(phone, () => other.send("/auth/factor", { by: "text" }));
  expect(page.path).toBe("/auth/factor?with=phone");
  expect((await other.send("/auth/factor", { by: "phone", code })).path).toBe("/auth/account");
  const byApp = new PageVisitor(platform);
  await byApp.send("/auth/sign-in", { email, password: PASSWORD });
  expect((await byApp.send("/auth/factor", { code: totpCode(secret) })).path).toBe("/auth/account");
});

test("[AU431] a change of a number that is a second factor takes a code of it, or a recovery code", async () => {
  const { visitor } = await signedIn();
  const [phone, next] = [nextPhone(), nextPhone()];
  await addNumber(visitor, phone);
  const recovery = await turnOn(visitor, phone);
  const refused = await act(visitor, "phone", { newPhone: next });
  expect(alertOf(refused)).toBe("The code is wrong, or has been used already.");
  expect(refused.text).toContain("Whoever changes or removes its number needs a code of it");
  const { code: proof } = await texted(phone, () => act(visitor, "phone-text"));
  const { code } = await texted(next, () => act(visitor, "phone", { newPhone: next, proof }));
  expect((await act(visitor, "phone-verify", { phoneCode: code })).text).toContain(`<p>${next}</p>`);
  const removed = await act(visitor, "phone", { remove: "1", proof: recovery[1] ?? "" });
  expect(removed.text).toContain("Your account has no phone number.");
});

test("[AU432] a reset removes the number unless its page is told to keep it", async () => {
  for (const keepPhone of [undefined, "1"]) {
    const { visitor, email } = await signedIn();
    const phone = nextPhone();
    await addNumber(visitor, phone);
    // Who proves an address that was not verified gets the account without the number in any case.
    const { body } = await platform.service.get<{ users: { id: string }[] }>(`/api/auth/admin/users?email=${email}`);
    await platform.service.patch(`/api/auth/admin/users/${body.users[0]?.id}`, { emailVerified: true });
    const other = new PageVisitor(platform);
    await other.send("/auth/forgot-password", { email });
    const link = new URL(lastMail(platform, email).link ?? "");
    const page = await other.open(link.pathname + link.search);
    expect(page.text).toContain('name="keepPhone"');
    expect(page.text).not.toContain('name="keepPasskeys"');
    await other.send("/auth/reset-password", { password: PASSWORD, ...(keepPhone === undefined ? {} : { keepPhone }) });
    await other.send("/auth/sign-in", { email, password: PASSWORD });
    expect((await other.open("/auth/account")).text.includes(phone)).toBe(keepPhone === "1");
  }
});

test("[AU431] who has nothing but the phone to sign in with is told so, and is not locked out", async () => {
  const phone = nextPhone();
  const visitor = new PageVisitor(platform);
  const { code } = await texted(phone, () => visitor.send("/auth/sign-in", { by: "phone", phone }));
  await visitor.send("/auth/sign-in", { by: "phone", code });
  expect(visitor.isSignedIn).toBe(true);
  expect(alertOf(await act(visitor, "phone-factor-begin"))).toBe("This is your only way to sign in.");
});
