import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { SERVICE_KEY } from "../../../../../tests/support/index.ts";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import { OUTBOX_ANSWER_MS } from "../limits.ts";

// How long requests for a mail take by the server's clock, without a mail server and with sign-up closed.

setDefaultTimeout(60_000);
const PASSWORD = "correct horse battery";
const KNOWN = "known@example.com";
const STEP_MS = 10;
/** An answer that does not wait for the clock comes within it, after the hash of a password too. */
const GRACE_MS = 400;

let platform: TimedPlatform;
let token = "";

beforeAll(async () => {
  platform = await timedPlatform({ auth: { magicLink: true, emailOtp: true, signup: false } });
  for (const email of [KNOWN, "asking@example.com"]) {
    const answer = await fetch(`${platform.url}/api/auth/admin/users`, {
      method: "POST",
      headers: { "x-platform-service-key": SERVICE_KEY, "content-type": "application/json" },
      body: JSON.stringify({ email, password: PASSWORD }),
    });
    expect(answer.status).toBe(201);
  }
  const asking = { email: "asking@example.com", password: PASSWORD };
  token = (await platform.post<{ accessToken: string }>("/api/auth/signin", asking)).body.accessToken;
});
afterAll(() => platform.stop());

/** Milliseconds of the server's clock until the answer, which is 200. */
async function timeOf(ask: () => Promise<{ status: number }>): Promise<number> {
  const beganAt = platform.clock.now();
  let status = 0;
  const asked = ask().then((answer) => {
    status = answer.status;
  });
  await Bun.sleep(GRACE_MS);
  while (status === 0) {
    await Bun.sleep(5);
    if (status === 0) platform.clock.advance(STEP_MS);
  }
  await asked;
  expect(status).toBe(200);
  return platform.clock.now() - beganAt;
}

const REQUESTS: [path: string, bodyOf: (email: string) => { [name: string]: string }][] = [
  ["request-password-reset", (email) => ({ email })],
  ["signin/magic-link", (email) => ({ email })],
  ["signin/email-otp", (email) => ({ email })],
  ["change-email", (newEmail) => ({ newEmail, password: PASSWORD })],
];

test.each([...REQUESTS])(
  "[AU287] requests for a mail to an unknown address are answered no sooner than to a known one: %s",
  async (path, bodyOf) => {
    for (const email of [KNOWN, "unknown@example.com"]) {
      const took = await timeOf(() => platform.as(token).post(`/api/auth/${path}`, bodyOf(email)));
      expect([email, took >= OUTBOX_ANSWER_MS]).toEqual([email, true]);
    }
  },
);
