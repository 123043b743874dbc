import { afterEach, expect, test } from "bun:test";
import { mailedToken, nextEmail, PASSWORD } from "../../../../../tests/http/auth/auth-support.ts";
import { createHttpClient } from "../../../../../tests/support/http-client.ts";
import { SERVICE_KEY } from "../../../../../tests/support/index.ts";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import { INVITATION_TTL_MS } from "../limits.ts";

let platform: TimedPlatform;
afterEach(() => platform.stop());

test("[AU220] a link is good for seven days; a later invitation counts from its own time", async () => {
  platform = await timedPlatform({});
  const service = createHttpClient(() => platform.url, { "x-platform-service-key": SERVICE_KEY });
  const email = nextEmail();
  const invite = async () => {
    expect((await service.post("/api/auth/admin/users/invite", { email })).status).toBe(201);
    return mailedToken(platform, email);
  };
  const accept = (token: string) => platform.post("/api/auth/accept-invite", { token, password: PASSWORD });
  const first = await invite();
  platform.clock.advance(INVITATION_TTL_MS);
  expect((await accept(first)).status).toBe(400);
  const second = await invite();
  platform.clock.advance(INVITATION_TTL_MS - 1);
  expect((await accept(second)).status).toBe(200);
});
