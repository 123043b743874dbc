import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { lastMail, signUp } from "./auth-support.ts";

interface Listed {
  id: string;
  name: string;
  state: string;
  data: { to: string; kind: string };
  error: string | null;
}

const received: { to: string; source: string }[] = [];
/** Answer of the mail server to a message: 250 takes it. */
let status = 250;
let smtp: SMTPServer;
let platform: TestPlatform;

const config = (port: number) => `{
  server: { publicUrl: "https://api.example.com" },
  auth: { magicLink: true, emailOtp: true, mail: { ${port === 0 ? "" : `smtp: { host: "127.0.0.1", port: ${port} }`} } },
  databases: { shared: { tables: { letters: {
    access: { read: true, insert: true },
    hooks: { beforeInsert: async (auth, { mail }, app) => { await app.mail.send(mail); return {}; } },
  } } } },
}`;

beforeAll(async () => {
  smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    onRcptTo({ address }, _session, done) {
      if (address.startsWith("unknown")) done(Object.assign(new Error("no such user"), { responseCode: 550 }));
      else done();
    },
    async onData(stream, session, done) {
      let source = "";
      for await (const chunk of stream) source += chunk;
      if (status !== 250) return done(Object.assign(new Error("later"), { responseCode: status }));
      for (const { address } of session.envelope.rcptTo) received.push({ to: address, source });
      done();
    },
  });
  await new Promise<void>((resolve) => void smtp.listen(0, "127.0.0.1", resolve));
  // A TCP server's address is an object.
  const { port } = smtp.server.address() as AddressInfo;
  platform = await testPlatform({ config: config(port) });
});
afterAll(async () => {
  await platform.stop();
  await new Promise<void>((resolve) => smtp.close(resolve));
});

const jobs = async (query = ""): Promise<{ text: string; jobs: Listed[] }> => {
  const { body } = await platform.service.get<{ jobs: Listed[] }>(`/api/admin/jobs?name=platform.mail${query}`);
  return { text: JSON.stringify(body), jobs: body.jobs };
};
const jobTo = async (to: string) => (await jobs()).jobs.find(({ data }) => data.to === to);
/** Returns the first mail to this address whose source has these words. */
const sourceTo = (to: string, words = "") =>
  received.find((mail) => mail.to === to && mail.source.includes(words))?.source.replaceAll(/=\r?\n/g, "");

test("[AU260] a mail that waits survives a SIGKILL; its link is encrypted at rest, and no answer contains it", async () => {
  status = 451;
  const to = "ann@example.com";
  expect((await platform.post("/api/auth/signin/magic-link", { email: to })).status).toBe(200);
  await until("the mail server has put it off", async () => ((await jobTo(to))?.error ?? "").includes("later"));
  const { text } = await jobs();
  const stored = readdirSync(platform.dataDirectory)
    .filter((name) => name.startsWith("jobs.db"))
    .map((name) => readFileSync(join(platform.dataDirectory, name), "latin1"));
  for (const content of [text, ...stored]) expect(content).not.toContain("token=");
  expect(await jobTo(to)).toMatchObject({ state: "waiting", data: { kind: "magicLink", to } });
  await platform.kill("SIGKILL");
  status = 250;
  await platform.restart();
  await until("it has arrived", () => sourceTo(to) !== undefined);
  const token = /token=3D([\w-]{43})/.exec(sourceTo(to) ?? "")?.[1] ?? "";
  expect((await platform.post("/api/auth/verify-magic-link", { token })).status).toBe(200);
  await until("the job is done", async () => (await jobTo(to))?.state === "done");
});

test("[AU260] a mail that the server refuses for good has failed at once", async () => {
  const to = "unknown@example.com";
  expect((await platform.post("/api/auth/signin/email-otp", { email: to })).status).toBe(200);
  await until("it has failed", async () => (await jobTo(to))?.state === "failed");
  expect((await jobTo(to))?.error).toContain("no such user");
});

test("[AU261] a reset for an unknown address leaves no job", async () => {
  const { user } = await signUp(platform);
  for (const email of [String(user.email), "nobody@example.com"]) {
    expect((await platform.post("/api/auth/request-password-reset", { email })).status).toBe(200);
  }
  await until("the user has the mail", () => sourceTo(String(user.email)) !== undefined);
  expect(await jobTo("nobody@example.com")).toBe(undefined);
});

test("[AU264] an account and its mail are one commit: a SIGKILL before the queue has the mail loses neither", async () => {
  status = 250;
  const verified = config((smtp.server.address() as AddressInfo).port).replace(
    "auth: {",
    "auth: { requireVerifiedEmail: true,",
  );
  const own = await testPlatform({ config: verified });
  try {
    // The queue's file is made for the first job: a directory in its place keeps it from being opened.
    const path = join(own.dataDirectory, "jobs.db");
    mkdirSync(path);
    const addresses = ["signed-up", "invited", "linked"].map((name) => `${name}@crash.example`);
    const [signedUp = "", invited = "", linked = ""] = addresses;
    const fields = { email: signedUp, password: "a long enough password" };
    expect((await own.post("/api/auth/signup", fields)).status).toBe(201);
    expect((await own.service.post("/api/auth/admin/users/invite", { email: invited })).status).toBe(201);
    expect((await own.post("/api/auth/signin/magic-link", { email: linked })).status).toBe(200);
    expect((await own.post("/api/auth/request-password-reset", { email: signedUp })).status).toBe(200);
    await own.kill("SIGKILL");
    const stored = ["system.db", "system.db-wal"].map((name) => readFileSync(join(own.dataDirectory, name), "latin1"));
    expect(stored.join("")).toContain("platform.mail");
    expect(stored.join("")).not.toContain("token=");
    rmdirSync(path);
    await own.restart();
    await until("all mails are sent", () => addresses.every((to) => sourceTo(to) !== undefined));
    await until("the second one too", () => received.filter(({ to }) => to === signedUp).length === 2);
    // The two arrive in either order.
    const source = sourceTo(signedUp, "Confirm your email address") ?? "";
    const link = /token=(?:3D)?([\w-]+)/.exec(source)?.[1] ?? "";
    expect((await own.post("/api/auth/verify-email", { token: link })).status).toBe(200);
  } finally {
    await own.stop();
  }
});

test("[AU263] app.mail.send sends a mail as a job, and refuses what is no mail by field", async () => {
  const send = (mail: { [name: string]: string | number }) => platform.post("/api/db/shared/tables/letters", { mail });
  const mail = { to: "Bo@Example.com", subject: "Hello\r\nBcc: x@example.com", text: "A text", html: "<p>A text</p>" };
  expect((await send(mail)).status).toBe(201);
  await until("it has arrived", () => sourceTo("bo@example.com") !== undefined);
  const source = sourceTo("bo@example.com") ?? "";
  expect(source).toContain("Subject: Hello Bcc: x@example.com");
  expect(source).toContain("<p>A text</p>");
  expect(source).toMatch(/Message-ID: <[0-9a-f-]{36}@localhost>/i);
  expect(await jobTo("bo@example.com")).toMatchObject({ data: { kind: "app" } });
  const wrong = await send({ to: "nobody", subject: "", body: 1 });
  expect(wrong.status).toBe(400);
  expect(Object.keys((wrong.body as { data?: object }).data ?? {}).sort()).toEqual(["body", "subject", "text", "to"]);
  expect((await send({ ...mail, text: "x".repeat(1024 * 1024 + 1) })).status).toBe(413);
});

test("[AU25] without a mail server the mail is in the outbox when the answer arrives, and its job is done", async () => {
  await platform.restart({ config: config(0) });
  const to = "eve@example.com";
  expect((await platform.post("/api/auth/signin/magic-link", { email: to })).status).toBe(200);
  expect(lastMail(platform, to).link).toContain("token=");
  await until("the job is done", async () => (await jobTo(to))?.state === "done");
  expect((await jobs()).text).not.toContain("token=");
});
