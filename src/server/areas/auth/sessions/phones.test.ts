import { afterEach, expect, test } from "bun:test";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import { until } from "../../../../../tests/support/until.ts";
import { MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";

// Times and bounds of codes that are sent to phones, by a clock that the test moves.

const DAY_MS = 24 * 60 * MINUTE_MS;
const sent: { to: string; code: string }[] = [];
let platform: TimedPlatform;

afterEach(async () => {
  onSend = () => {};
  logged.length = 0;
  await platform.stop();
});

const logged: string[] = [];
const note = (message: string): void => void logged.push(message);
const logger = { info: note, warn: note, error: note };
/** Runs when a text is sent. */
let onSend: () => unknown = () => {};

async function start(dataDirectory?: string): Promise<void> {
  const send = (_app: unknown, text: { to: string; code: string }) => {
    sent.push(text);
    return onSend();
  };
  platform = await timedPlatform(
    {
      auth: { mfa: { phone: true }, phones: { send, countries: ["AT"], perHour: 10_000 } },
      rateLimits: {
        auth: { requests: 100_000, window: 60 },
        signin: { requests: 100_000, window: 60 },
        phone: { requests: 100_000, window: 60 },
      },
    },
    { logger, ...(dataDirectory === undefined ? {} : { dataDirectory }) },
  );
}

async function askCode(phone: string): Promise<string> {
  const before = sent.length;
  expect((await platform.post("/api/auth/signin/phone", { phone })).status).toBe(200);
  await until("the text is sent", () => sent.length > before);
  return sent.at(-1)?.code ?? "";
}
/** Gives an account the number, by a code. */
async function giveNumber(token: string, newPhone: string): Promise<void> {
  const before = sent.length;
  expect((await platform.as(token).post("/api/auth/change-phone", { newPhone })).status).toBe(200);
  await until("the text is sent", () => sent.length > before);
  const { code } = sent.at(-1) ?? { code: "" };
  expect((await platform.as(token).post("/api/auth/verify-phone-change", { code })).status).toBe(200);
}
const verify = (phone: string, code: string) =>
  platform.post<{ accessToken: string; message?: string }>("/api/auth/verify-phone", { phone, code });

test("[AU372] a code is valid for five minutes", async () => {
  await start();
  const late = await askCode("+436601234001");
  platform.clock.advance(5 * MINUTE_MS);
  expect((await verify("+436601234001", late)).status).toBe(400);
  const timely = await askCode("+436601234002");
  platform.clock.advance(5 * MINUTE_MS - 1);
  expect((await verify("+436601234002", timely)).status).toBe(200);
});

test("[AU375] after ten minutes a number is sent texts again", async () => {
  await start();
  for (let count = 0; count < 5; count++) await askCode("+436601234003");
  platform.clock.advance(9 * MINUTE_MS);
  expect((await platform.post("/api/auth/signin/phone", { phone: "+436601234003" })).status).toBe(429);
  platform.clock.advance(MINUTE_MS);
  await askCode("+436601234003");
});

test("[AU376] after fifty wrong codes in a day a number's codes are 429 until the day is over, also after a restart; others, and the change of its owner, are not affected", async () => {
  await start();
  const phone = "+436601234004";
  const credentials = { email: "owner@example.com", password: "correct horse battery" };
  const owner = await platform.post<{ accessToken: string }>("/api/auth/signup", credentials);
  await giveNumber(owner.body.accessToken, phone);
  for (let round = 0; round < 10; round++) {
    platform.clock.advance(10 * MINUTE_MS);
    const code = await askCode(phone);
    const wrong = code === "000000" ? "111111" : "000000";
    for (let count = 0; count < 5; count++) expect((await verify(phone, wrong)).status).toBe(400);
  }
  platform.clock.advance(10 * MINUTE_MS);
  const { dataDirectory } = platform;
  await platform.stop();
  const { clock } = platform;
  const now = clock.now();
  await start(dataDirectory);
  platform.clock.advance(now - platform.clock.now());
  const right = await askCode(phone);
  const refused = await verify(phone, right);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(60 * 60);
  expect((await verify("+436601234005", await askCode("+436601234005"))).status).toBe(200);
  const again = await platform.post<{ accessToken: string }>("/api/auth/signin", credentials);
  await giveNumber(again.body.accessToken, "+436601234008");
  await giveNumber(again.body.accessToken, phone);
  platform.clock.advance(DAY_MS);
  expect((await verify(phone, await askCode(phone))).status).toBe(200);
});

test("[AU377] the number is changed after a sign-in of the last ten minutes alone, and the code is its user's", async () => {
  await start();
  const owner = await verify("+436601234006", await askCode("+436601234006"));
  const client = platform.as(owner.body.accessToken);
  platform.clock.advance(10 * MINUTE_MS + 1);
  const refused = await client.post<{ message: string }>("/api/auth/change-phone", { newPhone: "+436601234007" });
  expect(refused).toMatchObject({ status: 401, body: { message: "Sign in again" } });
  const again = await verify("+436601234006", await askCode("+436601234006"));
  const recent = platform.as(again.body.accessToken);
  const before = sent.length;
  expect((await recent.post("/api/auth/change-phone", { newPhone: "+436601234007" })).status).toBe(200);
  await until("the text is sent", () => sent.length > before);
  platform.clock.advance(5 * MINUTE_MS);
  const late = await recent.post("/api/auth/verify-phone-change", { code: sent.at(-1)?.code ?? "" });
  expect(late.status).toBe(400);
});

test("[AU423] a phone is made a second factor, and removed, after a sign-in of the last ten minutes alone", async () => {
  await start();
  const email = "factor@example.com";
  const credentials = { email, password: "correct horse battery" };
  const owner = await platform.post<{ accessToken: string }>("/api/auth/signup", credentials);
  const client = platform.as(owner.body.accessToken);
  await giveNumber(owner.body.accessToken, "+436601234011");
  const again = { status: 401, body: { message: "Sign in again" } };
  platform.clock.advance(10 * MINUTE_MS + 1);
  expect(await client.post("/api/auth/mfa/phone/enroll", {})).toMatchObject(again);
  const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", credentials);
  const recent = platform.as(body.accessToken);
  let before = sent.length;
  const enrolment = await recent.post<{ factorId: string }>("/api/auth/mfa/phone/enroll", {});
  await until("the text is sent", () => sent.length > before);
  const { factorId } = enrolment.body;
  const verified = await recent.post("/api/auth/mfa/phone/verify", { factorId, code: sent.at(-1)?.code ?? "" });
  expect(verified.status).toBe(200);
  before = sent.length;
  platform.clock.advance(6 * MINUTE_MS);
  expect((await recent.post("/api/auth/mfa/phone/code")).status).toBe(200);
  await until("the text is sent", () => sent.length > before);
  platform.clock.advance(4 * MINUTE_MS + 1);
  const code = sent.at(-1)?.code ?? "";
  expect(await recent.post("/api/auth/mfa/phone/code")).toMatchObject(again);
  expect(await recent.delete("/api/auth/mfa/phone", { code })).toMatchObject(again);
});

test("[AU374] a sender that throws, or takes over 15 s, is logged, and the code stays good", async () => {
  await start();
  const failures = () => logged.filter((message) => message === "auth: a text could not be sent").length;
  onSend = () => {
    throw new Error("the provider is down");
  };
  const code = await askCode("+436601234009");
  await until("the failure is logged", () => failures() === 1);
  expect((await verify("+436601234009", code)).status).toBe(200);
  onSend = () => new Promise(() => {});
  await askCode("+436601234010");
  platform.clock.advance(15 * SECOND_MS - 1);
  await Bun.sleep(10);
  expect(failures()).toBe(1);
  platform.clock.advance(1);
  await until("that it takes too long is logged", () => failures() === 2);
});
