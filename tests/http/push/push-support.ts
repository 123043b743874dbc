import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type FcmServer, startFcmServer } from "../../support/fcm-server.ts";
import { type HttpClient, type TestPlatform, testPlatform } from "../../support/index.ts";

export interface PushLog {
  id: string;
  userId: string | null;
  status: string;
  platform: string;
  title: string;
  body: string;
  timestamp: string;
  error: string | null;
}

export interface PushWorld {
  readonly fcm: FcmServer;
  readonly platform: TestPlatform;
  stop(): Promise<void>;
}

export const TITLED = { title: "Tonight", body: "The club meets at eight" };

/** The config that sends through this server. */
export const fcmConfig = ({ projectId, endpoint, tokenEndpoint, serviceAccount }: FcmServer): JsonObject => ({
  projectId,
  endpoint,
  tokenEndpoint,
  serviceAccount,
});

/** A platform that sends through an FCM on loopback. */
export async function pushWorld(config: JsonObject = {}): Promise<PushWorld> {
  const fcm = await startFcmServer();
  const platform = await testPlatform({ config: { push: { fcm: fcmConfig(fcm) }, ...config } });
  return {
    fcm,
    platform,
    async stop() {
      await platform.stop();
      await fcm.stop();
    },
  };
}

/** The token is the device id by default. */
export async function register(user: HttpClient, deviceId: string, options: JsonObject = {}): Promise<JsonObject> {
  const body = { deviceId, token: deviceId, platform: "android", ...options };
  const answer = await user.post("/api/push/register", body);
  if (answer.status !== 200) throw new Error(`cannot register ${deviceId}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

export async function logsOf(platform: TestPlatform, query: Record<string, string | number> = {}): Promise<PushLog[]> {
  return (await platform.service.get<{ logs: PushLog[] }>("/api/push/logs", { query })).body.logs;
}

export async function tokensOf(platform: TestPlatform, userId: string): Promise<string[]> {
  const answer = await platform.service.get<{ tokens: { token: string }[] }>("/api/push/tokens", { query: { userId } });
  return answer.body.tokens.map(({ token }) => token);
}

const POLLS_MAX = 1_000;
const POLL_MS = 20;

/** Polls until the condition holds: messages to topics are sent after their requests have been answered. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let poll = 0; poll < POLLS_MAX; poll++) {
    if (await isSo()) return;
    await Bun.sleep(POLL_MS);
  }
  throw new Error(`timed out waiting until ${what}`);
}
