import { afterEach, expect, test } from "bun:test";
import { readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { createAdministrator, SERVICE_KEY } from "../../../../tests/support/index.ts";
import { type TimedPlatform, timedPlatform } from "../../../../tests/support/timed-platform.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../kernel/time/duration.ts";
import { LINK_TTL_MS, LINKS_MAX, SESSIONS_OF_KEY_MAX } from "./limits.ts";
import { createLinkCode } from "./links.ts";

const SESSION = "/api/admin/session";

let running: TimedPlatform | null = null;
async function platformAt(options: Parameters<typeof timedPlatform>[1] = {}): Promise<TimedPlatform> {
  const serviceKeys = { brief: { key: "brief-key-0123456789abcdefghij", expiresAt: "2026-01-01T02:00:00Z" } };
  running = await timedPlatform({ serviceKeys }, options);
  return running;
}
afterEach(async () => running?.stop());

test("[AD4] a session ends an hour after its last use, and twelve after its sign-in", async () => {
  const platform = await platformAt();
  const { clock } = platform;
  const idle = await createAdministrator(platform, SERVICE_KEY);
  const busy = await createAdministrator(platform, SERVICE_KEY);
  for (let minutes = 0; minutes < 12 * 60 - 30; minutes += 30) {
    clock.advance(30 * MINUTE_MS);
    expect((await busy.get(SESSION)).status).toBe(200);
    if (minutes === 30) expect((await idle.get(SESSION)).status).toBe(401);
  }
  clock.advance(30 * MINUTE_MS - 1);
  expect((await busy.get(SESSION)).status).toBe(200);
  clock.advance(1);
  expect((await busy.get(SESSION)).status).toBe(401);
});

test("[AD4] a restart knows the last use to the minute", async () => {
  const first = await platformAt();
  const session = await createAdministrator(first, SERVICE_KEY);
  first.clock.advance(50 * MINUTE_MS);
  expect((await session.get(SESSION)).status).toBe(200);
  await first.stop();
  const second = await platformAt({ dataDirectory: first.dataDirectory, clock: first.clock });
  const headers = { cookie: session.cookie, "x-platform-admin": "1" };
  second.clock.advance(50 * MINUTE_MS);
  expect((await second.get(SESSION, { headers })).status).toBe(200);
  second.clock.advance(HOUR_MS);
  expect((await second.get(SESSION, { headers })).status).toBe(401);
});

test("[AD4] a session ends when its key expires", async () => {
  const platform = await platformAt();
  const session = await createAdministrator(platform, "brief-key-0123456789abcdefghij");
  for (let minutes = 0; minutes < 120; minutes += 30) {
    expect((await session.get(SESSION)).status).toBe(200);
    platform.clock.advance(30 * MINUTE_MS);
  }
  expect((await session.get(SESSION)).status).toBe(401);
});

test("[AD6] failures are forgotten after a minute", async () => {
  const platform = await platformAt();
  const attempt = async (key: string) => (await platform.post(SESSION, { key })).status;
  for (let count = 0; count < 5; count++) expect(await attempt("wrong")).toBe(401);
  expect(await attempt(SERVICE_KEY)).toBe(429);
  platform.clock.advance(60 * SECOND_MS);
  expect(await attempt(SERVICE_KEY)).toBe(204);
});

test("[AD11] the code of a link signs in once, within ten minutes, also when many try at the same time", async () => {
  const platform = await platformAt();
  const { dataDirectory } = platform;
  const attempt = async (code: string) => (await platform.post(SESSION, { code })).status;
  const code = createLinkCode(dataDirectory, { ids: systemIds });
  const answers = await Promise.all(Array.from({ length: 4 }, () => attempt(code)));
  expect(answers.sort()).toEqual([204, 401, 401, 401]);

  const old = createLinkCode(dataDirectory, { ids: systemIds });
  const [file = ""] = readdirSync(join(dataDirectory, "admin-links"));
  expect(file).not.toContain(old);
  const madeAt = (platform.clock.now() - LINK_TTL_MS) / SECOND_MS;
  utimesSync(join(dataDirectory, "admin-links", file), madeAt, madeAt);
  expect(await attempt(old)).toBe(401);

  platform.clock.advance(MINUTE_MS);
  const codes = Array.from({ length: LINKS_MAX + 1 }, () => createLinkCode(dataDirectory, { ids: systemIds }));
  expect(readdirSync(join(dataDirectory, "admin-links"))).toHaveLength(LINKS_MAX);
  expect(await attempt(codes.at(-1) ?? "")).toBe(204);
});

test("[AD12] one session above the limit ends the one that was used longest ago", async () => {
  const platform = await platformAt();
  const oldest = await createAdministrator(platform, SERVICE_KEY);
  platform.clock.advance(SECOND_MS);
  const next = await createAdministrator(platform, SERVICE_KEY);
  for (let count = 2; count < SESSIONS_OF_KEY_MAX; count++) await platform.post(SESSION, { key: SERVICE_KEY });
  expect((await next.get(SESSION)).status).toBe(200);
  await platform.post(SESSION, { key: SERVICE_KEY });
  expect((await oldest.get(SESSION)).status).toBe(401);
  expect((await next.get(SESSION)).status).toBe(200);
});
