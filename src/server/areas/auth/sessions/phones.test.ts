import { afterEach, expect, test } from "bun:test";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import { until } from "../../../../../tests/support/until.ts";
import { MINUTE_MS } from "../../../../kernel/time/duration.ts";

// Times and bounds of codes that are sent to phones, by a clock that the test moves.

const DAY_MS = 24 * 60 * MINUTE_MS;
const sent: { to: string; code: string }[] = [];
let platform: TimedPlatform;

afterEach(() => platform.stop());

async function start(dataDirectory?: string): Promise<void> {
  const send = (_app: unknown, text: { to: string; code: string }) => sent.push(text);
  platform = await timedPlatform(
    {
      auth: { phones: { send, countries: ["AT"], perHour: 10_000 } },
      rateLimits: {
        auth: { requests: 100_000, window: 60 },
        signin: { requests: 100_000, window: 60 },
        phone: { requests: 100_000, window: 60 },
      },
    },
    dataDirectory === undefined ? {} : { dataDirectory },
  );
}

async function askCode(phone: string): Promise<string> {
  const before = sent.length;
  expect((await platform.post("/api/auth/signin/phone", { phone })).status).toBe(200);
  await until("the text is sent", () => sent.length > before);
  return sent.at(-1)?.code ?? "";
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
  const owner = await verify(phone, await askCode(phone));
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
  platform.clock.advance(DAY_MS);
  expect((await verify(phone, await askCode(phone))).status).toBe(200);
  expect(owner.status).toBe(200);
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
