import type { ClientContext } from "./context.ts";
import { statusError } from "./transport/errors.ts";

/** Device without Web Push, such as a phone with an FCM token. */
export interface DeviceToken {
  token: string;
  platform: "android" | "ios" | "web";
}

export interface RegisteredDevice {
  id: string;
  token: string;
  platform: string;
  userId: string;
  createdAt: string;
}

/** Push notifications to this device. Needs a signed-in user. Failed calls reject with `PlatformError`. */
export interface Push {
  /**
   * Registers this browser, or this app with its provider's token, for the signed-in user. Call it at each start. A browser asks
   * the visitor for permission, so the first call belongs in a click handler. `deviceId` is generated and kept in the client's
   * store by default. Errors: `unavailable` where the server has no `push.webPush`; the browser's own error if the visitor
   * refuses.
   */
  register(device: ServiceWorkerRegistration | DeviceToken, options?: { deviceId?: string }): Promise<RegisteredDevice>;
  /** Unregisters this device, so that messages no longer reach it. Call it before signing out. */
  unregister(): Promise<void>;
  /** Subscribes all devices of the user to a topic. Errors: `not_found` without devices. */
  subscribe(topic: string): Promise<void>;
  unsubscribe(topic: string): Promise<void>;
}

/** Returns the browser's subscription, as the server takes it. */
async function subscriptionOf(
  { transport }: ClientContext,
  { pushManager }: ServiceWorkerRegistration,
): Promise<DeviceToken> {
  const { push } = await transport.request<{ push: { publicKey: string } | null }>("GET", "/api/config");
  if (push === null) {
    const message = "The config has no push.webPush";
    throw statusError(503, message);
  }
  const options = { userVisibleOnly: true, applicationServerKey: push.publicKey };
  const subscribe = () => pushManager.subscribe(options);
  // A subscription with a previous key of the server must be removed first.
  const subscription = await subscribe().catch(async (error: unknown) => {
    const present = await pushManager.getSubscription();
    if (present === null) throw error;
    await present.unsubscribe();
    return subscribe();
  });
  return { token: JSON.stringify(subscription), platform: "web" };
}

export function createPush(context: ClientContext): Push {
  const { transport, store, runtime } = context;
  const kept = (name: string) => `platform.push.${name}@${transport.url("")}`;
  const deviceIdOf = async () => {
    const present = await store.get(kept("device"));
    const id = present ?? runtime.uuid();
    if (present === null) await store.set(kept("device"), id);
    return id;
  };
  return {
    async register(device, { deviceId } = {}) {
      const { token, platform } = "pushManager" in device ? await subscriptionOf(context, device) : device;
      const body = { deviceId: deviceId ?? (await deviceIdOf()), token, platform };
      const registered = await transport.request<RegisteredDevice>("POST", "/api/push/register", { body });
      await store.set(kept("token"), token);
      return registered;
    },
    async unregister() {
      const token = await store.get(kept("token"));
      if (token === null) return;
      await transport.request("POST", "/api/push/unregister", { body: { token } });
      await store.remove(kept("token"));
    },
    async subscribe(topic) {
      await transport.request("POST", "/api/push/topic/subscribe", { body: { topic } });
    },
    async unsubscribe(topic) {
      await transport.request("POST", "/api/push/topic/unsubscribe", { body: { topic } });
    },
  };
}
