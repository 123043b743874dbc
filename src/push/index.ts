import { ADDRCONFIG } from "node:dns";
import { lookup } from "node:dns/promises";
import type { AnyElysia } from "elysia";
import type { PushAccessor } from "../config/app-access.ts";
import type { PushConfig } from "../config/types.ts";
import type { DatabaseFile } from "../db/index.ts";
import type { Http } from "../http/http.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { createPushAccessor } from "./accessor.ts";
import { createDeliveries } from "./delivery/deliveries.ts";
import { createFanOut } from "./delivery/fan-out.ts";
import { createTopicQueue } from "./delivery/topic-queue.ts";
import { STOP_GRACE_MS } from "./limits.ts";
import { loadServiceAccount } from "./providers/credentials.ts";
import { createDrillProvider } from "./providers/drill-provider.ts";
import { createFcm } from "./providers/fcm.ts";
import { publicAddress } from "./providers/public-address.ts";
import { createWebPush } from "./providers/web-push.ts";
import { createPushRoutes } from "./routes.ts";
import { createPushService } from "./service.ts";
import { createPushStore } from "./store.ts";
import { startSweep } from "./sweep.ts";
import type { Provider } from "./types.ts";

const FCM_ENDPOINT = "https://fcm.googleapis.com";
const TOKEN_ENDPOINT = "https://oauth2.googleapis.com/token";

export interface PushArea {
  routes(http: Http): AnyElysia;
  readonly accessor: PushAccessor;
  /** Begins nothing more, gives calls under way five seconds, and logs what has not been sent. */
  stop(): Promise<void>;
}

/**
 * Devices, topics and messages to them, in the server's own file. Errors: `ConfigError` for credentials that cannot be
 * used. Spec: Push endpoints; decisions 11.
 */
export async function createPushArea(deps: {
  config: PushConfig;
  /** true: messages are taken, and go nowhere. */
  isDrill: boolean;
  /** The server's own file, with the tables of schema/push.ts. */
  file: DatabaseFile;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}): Promise<PushArea> {
  const { clock, ids, logger } = deps;
  const store = createPushStore(deps.file);
  const stopping = new AbortController();
  const outgoing = (provider: Provider | null): Provider | null =>
    provider !== null && deps.isDrill ? createDrillProvider(logger) : provider;
  const deliveries = createDeliveries({
    fcm: outgoing(configuredFcm(deps.config.fcm, clock)),
    webPush: outgoing(await configuredWebPush(deps.config.webPush, clock)),
    ...{ clock, stopping: stopping.signal },
  });
  const fanOut = createFanOut({ store, deliveries, clock, ids, logger });
  const topics = createTopicQueue({ store, fanOut, stopping: stopping.signal, logger });
  const service = createPushService({ store, deliveries, fanOut, topics, clock, stopping: stopping.signal });
  const stopSweep = startSweep({ store, clock, logger });

  return {
    routes: (http) => createPushRoutes(http, service),
    accessor: createPushAccessor(service),
    async stop() {
      stopping.abort();
      const cancel = clock.after(STOP_GRACE_MS, () => {
        deliveries.giveUp(new Error("The server stopped before the provider had answered"));
      });
      await Promise.all([topics.idle(), service.idle(), stopSweep()]);
      cancel();
    },
  };
}

function configuredFcm(config: PushConfig["fcm"], clock: Clock): Provider | null {
  if (config === undefined) return null;
  const { projectId, endpoint = FCM_ENDPOINT, tokenEndpoint = TOKEN_ENDPOINT } = config;
  return createFcm({ account: loadServiceAccount(config), projectId, endpoint, tokenEndpoint, clock });
}

async function configuredWebPush(config: PushConfig["webPush"], clock: Clock): Promise<Provider | null> {
  if (config === undefined) return null;
  // Loaded when it is wanted: most servers start sooner without it.
  const { default: library } = await import("web-push");
  const addressOf = (hostname: string) => publicAddress(hostname, systemLookup);
  // The library wants it without the padding that base64url may have.
  const vapidDetails = { ...config, publicKey: config.publicKey.replace(/=+$/, "") };
  return createWebPush({ vapidDetails, library, addressOf, clock });
}

/** Every address of a family that this machine has, IPv4 first. */
async function systemLookup(hostname: string): Promise<string[]> {
  const found = await lookup(hostname, { all: true, hints: ADDRCONFIG, order: "ipv4first" });
  return found.map(({ address }) => address);
}
