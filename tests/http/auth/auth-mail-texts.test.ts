import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { lastMail, type Mail, mailedToken, nextEmail, outbox, PASSWORD, type Tokens } from "./auth-support.ts";

const SYSTEM_KEY = "system-key-0123456789abcdefghijklmnopqrstu";
const ADMIN_KEY = "admin-key-0123456789abcdefghijklmnopqrstuvw";
const USERS = "/api/auth/admin/users";
const TEMPLATES = "/api/admin/mail/templates";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      server: { publicUrl: "https://api.example.com" },
      auth: {
        ...{ appName: "Films & <Co>", magicLink: true, emailOtp: true },
        mail: {
          templates: {
            passwordReset: {
              subject: "{{name}}|{{inviter}}|{{data.team}}|{{appName}}",
              text: "Hello {{ name }},\n\n{{link}}\n\nYours,\n{{appName}} {{unknown}} <3",
              button: "Go on",
              languages: {
                de: { subject: "Neues Passwort für {{name}}", text: "Hallo {{name}}: {{link}}" },
                "pt-BR": { subject: "Nova senha", text: "{{link}}" },
              },
            },
            magicLink: {
              subject: "In",
              text: "{{link}}",
              languages: { de: { subject: "Anmelden", text: "{{link}}" } },
            },
            emailOtp: {
              subject: "Code",
              text: "{{code}}",
              languages: { de: { subject: "Kennwort", text: "{{code}}" } },
            },
          },
        },
      },
      serviceKeys: {
        system: { key: SYSTEM_KEY, scopes: ["system:*:*:read"] },
        admin: { key: ADMIN_KEY, scopes: ["auth:admin:*:read", "auth:admin:*:write"] },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(() => platform.stop());

type HtmlMail = Mail & { html: string };
const mailTo = (email: string) => lastMail(platform, email) as HtmlMail;
const signUpWith = async (body: JsonObject, headers: Record<string, string> = {}) => {
  const email = nextEmail();
  const answer = await platform.post<Tokens>("/api/auth/signup", { email, password: PASSWORD, ...body }, { headers });
  expect(answer.status).toBe(201);
  return { email, ...answer.body };
};
const resetMail = async (email: string): Promise<HtmlMail> => {
  await platform.post("/api/auth/request-password-reset", { email });
  return mailTo(email);
};

test("[AU360] values are filled in once, escaped in HTML, and a missing one is empty", async () => {
  const { email } = await signUpWith({ displayName: "{{appName}} & 'Ann'" });
  const { subject, text, html, link = "" } = await resetMail(email);
  expect(subject).toBe("{{appName}} & 'Ann'|||Films & <Co>");
  expect(text).toBe(`Hello {{appName}} & 'Ann',\n\n${link}\n\nYours,\nFilms & <Co> {{unknown}} <3`);
  expect(html).toContain("Hello {{appName}} &amp; &#39;Ann&#39;,");
  expect(html).toContain("Films &amp; &lt;Co&gt; {{unknown}} &lt;3");
  expect(html).not.toContain("<Co>");
});

test.each([
  ["https://evil.example", ""],
  ["Win at evil.example now", ""],
  ["www.evil", ""],
  ["evil\uFF0Eexample", ""],
  ["evil\u3002example", ""],
  ["evil\u2024example", ""],
  ["ev\u200Bil.exa\u200Bmple", ""],
  ["127.0.0.1", ""],
  ["write me: a@b", ""],
  ["J. R. Smith", "J. R. Smith"],
  ["Zoë \u202Eeman", "Zoë eman"],
  ["x".repeat(61), "x".repeat(60)],
])("[AU361] the name %p is %p in a mail", async (displayName, shown) => {
  const { email } = await signUpWith({ displayName });
  expect((await resetMail(email)).subject).toBe(`${shown}|||Films & <Co>`);
});

test("[AU362] an account's language chooses the texts: its own, or that of its first part", async () => {
  const german = await signUpWith({ language: "de-at", displayName: "Ann" });
  expect(german.user["language"]).toBe("de-AT");
  expect((await resetMail(german.email)).subject).toBe("Neues Passwort für Ann");
  const ann = platform.as(german.accessToken);
  for (const [language, subject] of [
    ["pt-BR", "Nova senha"],
    ["pt", "Ann|||Films & <Co>"],
    [null, "Ann|||Films & <Co>"],
    ["DE", "Neues Passwort für Ann"],
  ] as const) {
    expect((await ann.patch("/api/auth/me", { language })).status).toBe(200);
    expect((await resetMail(german.email)).subject).toBe(subject);
  }
  for (const language of ["", "deutsch, bitte", "d", "x".repeat(36), "__proto__"]) {
    expect((await ann.patch("/api/auth/me", { language })).status).toBe(400);
  }
  const changed = await platform.service.patch<JsonObject>(`${USERS}/${german.user.id}`, { language: "fr" });
  expect(changed.body["language"]).toBe("fr");
});

test("[AU362] Accept-Language decides where nothing else does, also for an address without an account", async () => {
  const headers = { "accept-language": "*, fr;q=0.2, de-CH;q=0.9, en;q=0.5, zz zz" };
  expect((await signUpWith({}, headers)).user["language"]).toBe("de-CH");
  expect((await signUpWith({ language: "en" }, headers)).user["language"]).toBe("en");
  expect((await signUpWith({}, { "accept-language": "!!, ;;;q=7" })).user["language"]).toBeNull();
  const email = nextEmail();
  await platform.post("/api/auth/signin/magic-link", { email }, { headers });
  expect(mailTo(email).subject).toBe("Anmelden");
  const token = mailedToken(platform, email);
  const { body } = await platform.post<Tokens>("/api/auth/verify-magic-link", { token }, { headers });
  expect(body.user["language"]).toBe("de-CH");
  const other = nextEmail();
  await platform.post("/api/auth/signin/email-otp", { email: other }, { headers });
  expect(mailTo(other).subject).toBe("Kennwort");
  // The account's own language comes before that of whoever asks.
  await platform.post("/api/auth/signin/magic-link", { email }, { headers: { "accept-language": "en" } });
  expect(mailTo(email).subject).toBe("Anmelden");
});

test("[AU362] who accepts an invitation has its language, else that of the request", async () => {
  const accept = async (invited: JsonObject, accepted: JsonObject) => {
    const email = nextEmail();
    expect((await platform.service.post(`${USERS}/invite`, { email, ...invited })).status).toBe(201);
    const body = { token: mailedToken(platform, email), password: PASSWORD, ...accepted };
    const headers = { "accept-language": "fr" };
    return (await platform.post<Tokens>("/api/auth/accept-invite", body, { headers })).body.user["language"];
  };
  expect(await accept({ language: "de" }, {})).toBe("de");
  expect(await accept({ language: "de" }, { language: "it" })).toBe("it");
  expect(await accept({}, {})).toBe("fr");
});

test("[AU363] HTML is made of the text, with a button for the link and colours for dark mode, and loads nothing", async () => {
  const { email } = await signUpWith({ displayName: "Ann" });
  const { html, link = "" } = await resetMail(email);
  expect(html).toContain(`<a href="${link}"`);
  expect(html).toContain(">Go on</a>");
  expect(html).toContain("prefers-color-scheme:dark");
  expect(html).not.toMatch(/<img|<script|<link|url\(|src=/);
  // A template without a label shows the link itself, and a code stands alone.
  await platform.post("/api/auth/signin/magic-link", { email });
  expect(mailTo(email).html).toContain(`>${mailTo(email).link}</a>`);
  await platform.post("/api/auth/signin/email-otp", { email });
  const mail = mailTo(email);
  expect(mail.html).toMatch(new RegExp(`>${mail.code}</p>`));
});

test("[AU364] administrators see and try each mail with sample data", async () => {
  const system = platform.withKey(SYSTEM_KEY);
  const admin = platform.withKey(ADMIN_KEY);
  const { body } = await system.get<Mail & { html: string }>(`${TEMPLATES}/passwordReset/preview`);
  expect(body.subject).toBe("Ann|Bob|team|Films & <Co>");
  expect(body.html).toContain("Go on");
  const german = await system.get<Mail>(`${TEMPLATES}/passwordReset/preview?language=de`);
  expect(german.body.subject).toBe("Neues Passwort für Ann");
  const invitation = await system.get<Mail>(`${TEMPLATES}/invite/preview`);
  expect(invitation.body.subject).toBe("Bob invites you to Films & <Co>");
  expect((await system.get(`${TEMPLATES}/constructor/preview`)).status).toBe(404);
  expect((await admin.get(`${TEMPLATES}/invite/preview`)).status).toBe(403);
  expect((await platform.get(`${TEMPLATES}/invite/preview`)).status).toBe(401);

  const to = nextEmail();
  expect((await system.post(`${TEMPLATES}/invite/test`, { to })).status).toBe(403);
  expect((await admin.post(`${TEMPLATES}/invite/test`, { to: "nobody" })).status).toBe(400);
  expect((await admin.post(`${TEMPLATES}/invite/test`, { to })).status).toBe(200);
  expect(mailTo(to)).toMatchObject({ kind: "invite", subject: "Bob invites you to Films & <Co>" });
  const audit = await platform.service.get<{ entries: JsonObject[] }>("/api/admin/audit?action=user.mail&limit=1");
  expect(JSON.stringify(audit.body)).toContain(to);
  const statuses: number[] = [];
  for (let n = 0; n < 10; n++) statuses.push((await admin.post(`${TEMPLATES}/emailOtp/test`, { to })).status);
  expect(statuses).toEqual([...Array(9).fill(200), 429]);
  expect(outbox(platform).filter((mail) => mail.to === to)).toHaveLength(10);
});
