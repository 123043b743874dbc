import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Secret, TOTP } from "otpauth";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { HttpClient } from "../../support/http-client.ts";
import type { TestPlatform } from "../../support/platform.ts";
import { until } from "../../support/until.ts";

export const PASSWORD = "correct horse battery";

export interface Tokens {
  user: JsonObject & { id: string; email: string | null; role: string; emailVerified: boolean; isAnonymous: boolean };
  accessToken: string;
  refreshToken: string;
}

export interface Ticket {
  mfaRequired: true;
  mfaTicket: string;
  factors: { id: string; type: string }[];
}

export interface Mail {
  kind: string;
  to: string;
  from: string;
  subject: string;
  text: string;
  link?: string;
  code?: string;
}

let emails = 0;
export const nextEmail = (): string => `person-${++emails}@example.com`;

/** A new user by the public door. */
export async function signUp(platform: Pick<HttpClient, "post">, email = nextEmail()): Promise<Tokens> {
  const answer = await platform.post<Tokens>("/api/auth/signup", { email, password: PASSWORD });
  if (answer.status !== 201) throw new Error(`sign-up answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Everything mailed so far, oldest first. */
export function outbox(platform: Pick<TestPlatform, "dataDirectory">): Mail[] {
  const directory = join(platform.dataDirectory, "outbox");
  const names = readdirSync(directory).sort();
  return names.map((name) => JSON.parse(readFileSync(join(directory, name), "utf8")));
}

export function lastMail(platform: Pick<TestPlatform, "dataDirectory">, to: string): Mail {
  const mail = outbox(platform).findLast((one) => one.to === to);
  if (mail === undefined) throw new Error(`no mail to ${to}`);
  return mail;
}

/**
 * A request for a mail at a platform whose clock stands still: waits for the mail, then lets pass what its answer waits for. Gives the
 * answer.
 */
export async function mailAnswer<T>(
  platform: { dataDirectory: string; refused<Answer>(answer: Promise<Answer>): Promise<Answer> },
  to: string,
  ask: () => Promise<T>,
): Promise<T> {
  const count = () =>
    existsSync(join(platform.dataDirectory, "outbox")) ? outbox(platform).filter((mail) => mail.to === to).length : 0;
  const before = count();
  const answer = ask();
  await until("the mail is in the outbox", () => count() > before);
  return platform.refused(answer);
}

export function mailedToken(platform: Pick<TestPlatform, "dataDirectory">, to: string): string {
  return new URL(lastMail(platform, to).link ?? "").searchParams.get("token") ?? "";
}

const STEP_MS = 30_000;

/** The code that an authenticator app shows, `steps` from now. */
export function totpCode(secret: string, steps = 0, nowMs = Date.now()): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: nowMs + steps * STEP_MS });
}

/** Waits, where needed, so that the next seconds lie within one step. */
export async function steadyStep(): Promise<void> {
  const left = STEP_MS - (Date.now() % STEP_MS);
  if (left < 4_000) await Bun.sleep(left + 50);
}

export interface Enrolment {
  factorId: string;
  secret: string;
  uri: string;
  recoveryCodes: string[];
}

/** Enrols with the code of the step before now, which leaves the present and the next one for sign-ins. */
export async function enrol(user: Pick<HttpClient, "post">): Promise<Enrolment> {
  await steadyStep();
  const { body } = await user.post<Enrolment>("/api/auth/mfa/totp/enroll");
  const verified = await user.post("/api/auth/mfa/totp/verify", {
    factorId: body.factorId,
    code: totpCode(body.secret, -1),
  });
  if (verified.status !== 200) throw new Error(`verifying the factor answered ${verified.status}`);
  return body;
}
