import type { Logger } from "../../src/kernel/logger.ts";
import { SECOND_MS } from "../../src/kernel/time/duration.ts";
import type { PlatformConfig } from "../../src/server/config/types.ts";
import { createPlatform, type Platform } from "../../src/server/platform/index.ts";

import { type TestClock, testClock } from "./clock.ts";
import { createHttpClient, type HttpClient } from "./http-client.ts";
import { JWT_SECRET, SERVICE_KEY, temporaryDirectory } from "./platform.ts";

/** Platform in this process with a test clock. */
export interface TimedPlatform extends HttpClient {
  url: string;
  clock: TestClock;
  dataDirectory: string;
  as(token: string): HttpClient;
  /** Advances the clock past the delay of a refused password, or of a mail request, and returns the response. */
  refused<T>(answer: Promise<T>): Promise<T>;
  /** Stops the platform, advancing the clock while it waits. */
  stop(): Promise<void>;
}

export async function timedPlatform(
  config: PlatformConfig,
  options: { dataDirectory?: string; clock?: TestClock; logger?: Logger } = {},
): Promise<TimedPlatform> {
  const { dataDirectory = temporaryDirectory(), clock = testClock(), logger } = options;
  const secrets = { serviceKey: SERVICE_KEY, jwtSecret: JWT_SECRET };
  const rateLimits = { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } };
  const platform = await createPlatform(
    { rateLimits, ...config },
    { dataDirectory, secrets, clock, ...(logger === undefined ? {} : { logger }) },
  );
  const { url } = await platform.listen({ port: 0 });
  const client = (headers: Record<string, string> = {}) => createHttpClient(() => url, headers);
  return {
    ...client(),
    ...{ url, clock, dataDirectory },
    as: (token) => client({ authorization: `Bearer ${token}` }),
    refused: (answer) => waitBy(clock, 50, answer),
    stop: once(() => waitBy(clock, SECOND_MS, platform.stop())),
  };
}

type Stop = Platform["stop"];

function once(stop: Stop): Stop {
  let stopped: Promise<void> | null = null;
  return () => {
    stopped ??= stop();
    return stopped;
  };
}

/** Rounds of slow steps before the clock advances quickly: child processes need real time to exit. */
const QUIET_ROUNDS = 500;
const QUIET_STEP_MS = 10;

async function waitBy<T>(clock: TestClock, stepMs: number, work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  work.then(done, done);
  for (let round = 0; !isDone && round < 1_000; round++) {
    await Bun.sleep(2);
    clock.advance(round < QUIET_ROUNDS ? Math.min(stepMs, QUIET_STEP_MS) : stepMs);
  }
  return work;
}
