import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../../tests/support/index.ts";

const USERS = 200;
const DEVICES_PER_USER = 50;
const DEVICES = USERS * DEVICES_PER_USER;
const ROUNDS = 3;
/** Number of concurrent calls, equal to that of a message to a topic. */
const FLOOR_CALLS_AT_ONCE = 40;
const COUNT_EVERY_MS = 20;
const HEALTH_EVERY_MS = 2;

export interface PushFigures {
  sentPerSecond: number;
  floorPerSecond: number;
  healthP50Ms: number;
  healthP99Ms: number;
}

interface Fcm {
  config: { projectId: string; endpoint: string; tokenEndpoint: string; serviceAccount: Record<string, string> };
  taken(): Promise<number>;
  stop(): void;
}

async function startFcm(): Promise<Fcm> {
  let next = Promise.withResolvers<unknown>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../fcm-server.ts")], {
    ...{ stdin: "ignore", stdout: "inherit", stderr: "inherit" },
    ipc: (message) => next.resolve(message),
  });
  // bench/fcm-server.ts sends this first.
  const config = (await next.promise) as Fcm["config"];
  return {
    config,
    async taken() {
      next = Promise.withResolvers();
      child.send("count");
      return Number(await next.promise);
    },
    stop: () => child.kill(),
  };
}

async function registerDevices(platform: TestPlatform): Promise<void> {
  for (let user = 0; user < USERS; user++) {
    const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin/anonymous");
    const own = platform.as(body.accessToken);
    const devices = Array.from({ length: DEVICES_PER_USER }, (_, device) => `device${user}x${device}`);
    await Promise.all(
      devices.map((deviceId) => own.post("/api/push/register", { deviceId, token: deviceId, platform: "android" })),
    );
  }
}

/** Sends a broadcast, with a concurrent health check every 2 ms. Returns its duration in seconds. */
async function broadcast(platform: TestPlatform, fcm: Fcm, health: number[]): Promise<number> {
  const wanted = (await fcm.taken()) + DEVICES;
  const startedAt = performance.now();
  const accepted = await platform.service.post("/api/push/broadcast", {
    payload: { title: "Tonight", body: "The club meets at eight", data: { film: 7 } },
  });
  if (accepted.status !== 200) throw new Error(`the broadcast was answered ${accepted.status}`);
  const probes: Promise<void>[] = [];
  const probe = async () => {
    const askedAt = performance.now();
    await (await platform.fetch("/api/health")).arrayBuffer();
    health.push(performance.now() - askedAt);
  };
  // Independent of earlier responses: a slow server must not be probed less often.
  const timer = setInterval(() => probes.push(probe()), HEALTH_EVERY_MS);
  while ((await fcm.taken()) < wanted) await Bun.sleep(COUNT_EVERY_MS);
  const seconds = (performance.now() - startedAt) / 1000;
  clearInterval(timer);
  await Promise.all(probes);
  return seconds;
}

/** Sends the same calls from a bare process: no devices, no log, an access token that already exists. */
async function floor(fcm: Fcm, accessToken: string): Promise<number> {
  const url = `${fcm.config.endpoint}/v1/projects/${fcm.config.projectId}/messages:send`;
  const headers = { authorization: `Bearer ${accessToken}`, "content-type": "application/json" };
  const startedAt = performance.now();
  let count = 0;
  const work = async () => {
    while (count < DEVICES) {
      const message = { token: `floor${count++}`, notification: { title: "Tonight", body: "The club meets at eight" } };
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ message }) });
      if (!response.ok) throw new Error(`the floor was answered ${response.status}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: FLOOR_CALLS_AT_ONCE }, work));
  return (performance.now() - startedAt) / 1000;
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;

/** Measures broadcasts to 10,000 devices, alternating with the floor. */
export async function measurePush(): Promise<PushFigures> {
  const fcm = await startFcm();
  const often = { requests: 1_000_000, window: 60 };
  const platform = await testPlatform({
    config: {
      ...{ auth: { anonymous: true }, rateLimits: { auth: often, signup: often }, push: { fcm: fcm.config } },
    },
  });
  try {
    await registerDevices(platform);
    const own: number[] = [];
    const bare: number[] = [];
    const health: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      own.push(await broadcast(platform, fcm, health));
      // The server has received the first token of this FCM.
      bare.push(await floor(fcm, "ya29.1"));
    }
    return {
      sentPerSecond: DEVICES / percentile(own, 0.5),
      floorPerSecond: DEVICES / percentile(bare, 0.5),
      healthP50Ms: percentile(health, 0.5),
      healthP99Ms: percentile(health, 0.99),
    };
  } finally {
    await platform.stop();
    fcm.stop();
  }
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await measurePush(), null, 2)}\n`);
