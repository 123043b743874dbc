import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { PushConfig } from "../../config/types.ts";
import type { DatabaseFile, RecordChange } from "../../db/index.ts";
import type { Queue } from "../../jobs/index.ts";
import { createPushAccessor } from "./accessor.ts";
import { createDeliveries } from "./delivery/deliveries.ts";
import { createFanOut } from "./delivery/fan-out.ts";
import { createTopicQueue } from "./delivery/topic-queue.ts";
import { administrationEndpoints, clientEndpoints } from "./endpoints/devices.ts";
import { listEndpoints } from "./endpoints/lists.ts";
import { sendingEndpoints } from "./endpoints/sending.ts";
import { STOP_GRACE_MS } from "./limits.ts";
import { PushLists } from "./lists.ts";
import type { Provider } from "./message.ts";
import { createFcm, loadServiceAccount } from "./providers/fcm.ts";
import { createDrillProvider } from "./providers/provider-answer.ts";
import { publicAddress, systemLookup } from "./providers/public-address.ts";
import { createWebPush } from "./providers/web-push.ts";
import { PushService } from "./service.ts";
import { PushStore } from "./store.ts";

const FCM_ENDPOINT = "https://fcm.googleapis.com";
const TOKEN_ENDPOINT = "https://oauth2.googleapis.com/token";

export { moveDevices } from "./statements/push.ts";

export type PushArea = Awaited<ReturnType<typeof createPushArea>>;

/** Creates the push area: devices, topics and messages, in system.db. Errors: `ConfigError` for unusable credentials. Rules: SPEC.md. */
export async function createPushArea(deps: {
  config: PushConfig;
  /** Whether messages are accepted but not sent. */
  isDrill: boolean;
  /** Runs messages to topics as jobs. */
  queue: Queue;
  /** system.db. */
  file: DatabaseFile;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  /** Adds an action of the current caller to the audit log. */
  audit: RecordChange;
}) {
  const { clock, ids, logger } = deps;
  const store = new PushStore(deps.file);
  const stopping = new AbortController();
  const outgoing = (provider: Provider | null): Provider | null =>
    provider !== null && deps.isDrill ? createDrillProvider(logger) : provider;
  const deliveries = createDeliveries({
    fcm: outgoing(configuredFcm(deps.config.fcm, clock)),
    webPush: outgoing(await configuredWebPush(deps.config.webPush, clock)),
    clock,
    stopping: stopping.signal,
  });
  const fanOut = createFanOut({ store, deliveries, clock, ids, logger });
  const { queue, isDrill } = deps;
  const topics = createTopicQueue({ queue, isDrill, store, fanOut, stopping: stopping.signal, clock, logger });
  const service = new PushService({ store, deliveries, fanOut, topics, clock, stopping: stopping.signal });
  const stopSweep = store.startSweep({ clock, logger });

  return {
    endpoints: [
      ...clientEndpoints(service),
      ...sendingEndpoints(service, deps.audit),
      ...administrationEndpoints(service),
      ...listEndpoints(new PushLists(store, clock)),
    ],
    accessor: createPushAccessor(service),
    /** Starts no further calls, waits up to STOP_GRACE_MS for running ones, and logs messages that were not sent. */
    async stop(): Promise<void> {
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
  // Imported only if configured, for a faster start without it.
  const { default: library } = await import("web-push");
  const addressOf = (hostname: string) => publicAddress(hostname, systemLookup);
  // The library requires base64url without padding.
  const vapidDetails = { ...config, publicKey: config.publicKey.replace(/=+$/, "") };
  return createWebPush({ vapidDetails, library, addressOf, clock });
}
