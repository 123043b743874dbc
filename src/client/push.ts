import type { ClientContext } from "./context.ts";
import { statusError } from "./transport/errors.ts";

/** A device without Web Push, such as a phone with a token of FCM. */
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

/** Push messages to this device. All of it needs a signed-in user. Errors of all: `PlatformError`. */
export interface Push {
  /**
   * Registers this browser, or this app with the token of its provider, for the signed-in user: call it at each start. A browser
   * asks the visitor for the permission, so the first call belongs into a click. `deviceId` is made and kept in the client's
   * store if there is none. Errors: `unavailable` where the server has no `push.webPush`; what the browser throws where the visitor
   * refuses.
   */
  register(device: ServiceWorkerRegistration | DeviceToken, options?: { deviceId?: string }): Promise<RegisteredDevice>;
  /** Before signing out: messages do not reach this device any more. */
  unregister(): Promise<void>;
  /** Subscribes all devices of the user to a topic. Errors: `not_found` without devices. */
  subscribe(topic: string): Promise<void>;
  unsubscribe(topic: string): Promise<void>;
}

/** The subscription of a browser as the server takes it. */
async function subscriptionOf(
  { transport }: ClientContext,
  { pushManager }: ServiceWorkerRegistration,
): Promise<DeviceToken> {
  const { push } = await transport.request<{ push: { publicKey: string } | null }>("GET", "/api/config");
  if (push === null) {
    const message = "The server's config has no push.webPush";
    throw statusError(503, message);
  }
  const options = { userVisibleOnly: true, applicationServerKey: push.publicKey };
  const subscribe = () => pushManager.subscribe(options);
  // A subscription with another key, of before the server's was replaced, must go first.
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
