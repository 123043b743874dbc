import type { ClientContext } from "../context.ts";
import { statusError } from "../transport/errors.ts";
import type { DeviceToken, Push, RegisteredDevice } from "./types.ts";

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
