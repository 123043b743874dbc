import { afterAll, beforeAll, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { nextEmail } from "./auth-support.ts";

interface Received {
  from: string;
  to: string[];
  user: string | undefined;
  source: string;
}

const received: Received[] = [];
let waiting: (() => void)[] = [];
let refusals = 0;
let smtp: SMTPServer;
let platform: TestPlatform;

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onAuth: ({ username, password }, _session, done) =>
      password === "mail password" ? done(null, { user: username ?? "" }) : done(new Error("refused")),
    async onData(stream, session, done) {
      let source = "";
      for await (const chunk of stream) source += chunk;
      if (refusals > 0) {
        refusals--;
        return done(Object.assign(new Error("try again later"), { responseCode: 451 }));
      }
      const { mailFrom, rcptTo } = session.envelope;
      const from = mailFrom === false ? "" : mailFrom.address;
      received.push({ from, to: rcptTo.map(({ address }) => address), user: session.user, source });
      for (const wake of waiting.splice(0)) wake();
      done();
    },
  });
  await new Promise<void>((resolve) => void smtp.listen(0, "127.0.0.1", resolve));
  // A TCP server's address is an object.
  const { port } = smtp.server.address() as AddressInfo;
  platform = await testPlatform({
    config: {
      server: { publicUrl: "https://api.example.com" },
      auth: {
        ...{ magicLink: true, emailOtp: true },
        mail: {
          smtp: { host: "127.0.0.1", port, user: "club", pass: "mail password" },
          from: "Film Club <club@example.com>",
        },
      },
    },
  });
});
afterAll(async () => {
  await platform.stop();
  await new Promise<void>((resolve) => smtp.close(resolve));
  waiting = [];
});

async function mailTo(email: string): Promise<Received> {
  for (;;) {
    const found = received.find((mail) => mail.to.includes(email));
    if (found !== undefined) return found;
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
}

/** Quoted-printable as it was before. */
const decoded = (source: string) =>
  source
    .replaceAll(/=\r?\n/g, "")
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

test("[AU25] with smtp, the server sends mails from the configured sender with the configured credentials", async () => {
  const email = nextEmail();
  expect((await platform.post("/api/auth/signin/magic-link", { email })).status).toBe(200);
  const mail = await mailTo(email);
  expect(mail).toMatchObject({ from: "club@example.com", to: [email], user: "club" });
  expect(mail.source).toContain("From: Film Club <club@example.com>");
  const token =
    /https:\/\/api\.example\.com\/auth\/magic-link\?token=([\w-]{43})/.exec(decoded(mail.source))?.[1] ?? "";
  expect((await platform.post("/api/auth/verify-magic-link", { token })).status).toBe(200);
});

test("[AU25] the answer does not wait for the mail server, and a mail that it defers is retried", async () => {
  refusals = 1;
  const email = nextEmail();
  expect((await platform.post("/api/auth/signin/email-otp", { email })).status).toBe(200);
  expect(received.some((mail) => mail.to.includes(email))).toBe(false);
  const code = /Your sign-in code[^:]*: (\d{6})/.exec(decoded((await mailTo(email)).source))?.[1] ?? "";
  expect((await platform.post("/api/auth/verify-email-otp", { email, code })).status).toBe(200);
}, 20_000);
