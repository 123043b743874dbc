import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { generateVAPIDKeys } from "web-push";
import { createClient, memoryStore, type PlatformError } from "../../src/client/index.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";

const vapid = generateVAPIDKeys();
let platform: TestPlatform;
let proxy: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({
    config: { auth: { anonymous: true }, push: { webPush: { subject: "mailto:a@example.com", ...vapid } } },
  });
  proxy = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

async function signedIn(url = platform.url, store = memoryStore()) {
  const client = createClient({ url, store });
  if (client.auth.user === null) await client.auth.signInAnonymously();
  return client;
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: PlatformError) => error.code,
  );

interface Tracked {
  eventName: string;
  userId: string | null;
  properties: object;
}
const events = async (): Promise<Tracked[]> =>
  (await platform.service.get<{ events: Tracked[] }>("/api/analytics/events?limit=1000")).body.events;

interface Device {
  token: string;
  platform: string;
}
const devicesOf = async (userId = ""): Promise<Device[]> =>
  (await platform.service.get<{ tokens: Device[] }>(`/api/push/tokens?userId=${userId}`)).body.tokens;

/** Returns the registration that a page gets of a browser, as far as the client uses it. `oldKey`: it has a subscription with another key. */
function registration(options: { oldKey?: boolean } = {}) {
  const subscribed: unknown[] = [];
  let isOld = options.oldKey ?? false;
  const pushManager = {
    async subscribe(given: { applicationServerKey: string }) {
      if (isOld) throw new DOMException("another key", "InvalidStateError");
      subscribed.push(given);
      return { toJSON: () => ({ endpoint: "https://push.example/1", keys: { p256dh: "a", auth: "b" } }) };
    },
    getSubscription: async () => ({
      async unsubscribe() {
        isOld = false;
      },
    }),
  };
  return { subscribed, registration: { pushManager } as unknown as ServiceWorkerRegistration };
}

test("[TC103] a browser is registered with the server's key, once however often, and unregistered", async () => {
  const store = memoryStore();
  const client = await signedIn(platform.url, store);
  const browser = registration();
  const first = await client.push.register(browser.registration);
  expect(first).toMatchObject({ platform: "web", userId: client.auth.user?.id });
  expect(browser.subscribed).toEqual([{ userVisibleOnly: true, applicationServerKey: vapid.publicKey }]);
  client.close();
  const later = await signedIn(platform.url, store);
  expect((await later.push.register(browser.registration)).id).toBe(first.id);
  expect((await devicesOf(later.auth.user?.id)).map(({ platform: kind }) => kind)).toEqual(["web"]);
  await later.push.subscribe("news");
  await later.push.unsubscribe("news");
  await later.push.unregister();
  expect(await devicesOf(later.auth.user?.id)).toEqual([]);
  expect(await codeOf(later.push.subscribe("news"))).toBe("not_found");
  later.close();
});

test("[TC103] a subscription with an earlier key is replaced; an app registers with its token", async () => {
  const client = await signedIn();
  const browser = registration({ oldKey: true });
  await client.push.register(browser.registration);
  expect(browser.subscribed).toHaveLength(1);
  await client.push.register({ token: "fcm-token", platform: "android" }, { deviceId: "my-phone" });
  expect(new Set((await devicesOf(client.auth.user?.id)).map(({ platform: kind }) => kind))).toEqual(
    new Set(["web", "android"]),
  );
  const nobody = createClient({ url: platform.url, store: memoryStore() });
  expect(await codeOf(nobody.push.register({ token: "t", platform: "ios" }))).toBe("unauthenticated");
  client.close();
  nobody.close();
});

test("[TC104] events are sent together, each with the user it happened to", async () => {
  const client = createClient({ url: platform.url, store: memoryStore() });
  client.analytics.track("before", { plan: "pro", seats: 3 });
  await client.analytics.flush();
  await client.auth.signInAnonymously();
  for (let index = 0; index < 250; index++) client.analytics.track("many", { index });
  await client.analytics.flush();
  const all = await events();
  expect(all.find(({ eventName }) => eventName === "before")).toMatchObject({
    userId: null,
    properties: { plan: "pro", seats: 3 },
  });
  const many = all.filter(({ eventName }) => eventName === "many");
  expect([many.length, new Set(many.map(({ userId }) => userId)).size]).toEqual([250, 1]);
  client.close();
});

test("[TC104] without a network events wait; closing the client sends them", async () => {
  const client = await signedIn(proxy.url);
  proxy.refuse(true);
  client.analytics.track("waiting");
  expect(await codeOf(client.analytics.flush())).toBe("network");
  proxy.refuse(false);
  await client.analytics.flush();
  client.analytics.track("last");
  await client.analytics.flush();
  expect((await events()).filter(({ eventName }) => eventName === "waiting")).toHaveLength(1);
  client.analytics.track("closing");
  // Its code is loaded by now.
  await Bun.sleep(0);
  client.close();
  await until("it is there", async () => (await events()).some(({ eventName }) => eventName === "closing"));
});

test("[TC104] an event that the server refuses is a warning, and the others are recorded", async () => {
  const client = await signedIn();
  const warn = spyOn(console, "warn").mockImplementation(() => {});
  client.analytics.track("good");
  client.analytics.track(" ");
  client.analytics.track("no number", { n: Number.NaN });
  client.analytics.track("good too");
  await client.analytics.flush();
  expect(warn).toHaveBeenCalled();
  warn.mockRestore();
  const names = (await events()).map(({ eventName }) => eventName);
  expect([names.includes("good"), names.includes("good too")]).toEqual([true, true]);
  client.close();
});

test("[TC104] events of a page that is hidden without a network wait, as it may be shown again", async () => {
  const client = await signedIn(proxy.url);
  const names = ["document", "addEventListener", "removeEventListener"] as const;
  const before = names.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
  const page = Object.assign(new EventTarget(), { visibilityState: "hidden" });
  Object.assign(globalThis, { document: page, addEventListener() {}, removeEventListener() {} });
  const failed: unknown[] = [];
  const real = globalThis.fetch;
  const fetched = spyOn(globalThis, "fetch").mockImplementation(((...given: Parameters<typeof fetch>) =>
    real(...given).catch((error) => {
      failed.push(error);
      throw error;
    })) as typeof fetch);
  try {
    // Loads its code, which asks whether there is a page.
    await client.analytics.flush();
    proxy.refuse(true);
    client.analytics.track("in a tunnel");
    await Bun.sleep(0);
    page.dispatchEvent(new Event("visibilitychange"));
    await until("the request has failed", () => failed.length > 0);
    proxy.refuse(false);
    await until("the event is recorded once", async () => {
      await client.analytics.flush();
      return (await events()).filter(({ eventName }) => eventName === "in a tunnel").length === 1;
    });
  } finally {
    client.close();
    fetched.mockRestore();
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
      else Object.defineProperty(globalThis, name, descriptor);
    }
  }
});
