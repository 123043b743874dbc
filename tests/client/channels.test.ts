import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient, memoryStore, type PlatformError } from "../../src/client/index.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";

let platform: TestPlatform;
let proxy: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({ config: await Bun.file(new URL("rooms-config.ts", import.meta.url)).text() });
  proxy = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

async function signedIn(url = platform.url) {
  const client = createClient({ url, store: memoryStore() });
  await client.auth.signInAnonymously();
  return client;
}

type Watched = ReturnType<typeof createClient>;

/** Time by which code that is loaded at its use has long come, and would connect. */
const LOADING_MS = 300;

const watched = (opened: WebSocket[]) =>
  class extends WebSocket {
    constructor(url: string, protocols?: string[]) {
      super(url, protocols);
      opened.push(this);
    }
  };

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: PlatformError) => error.code,
  );

test("[TC97] presence shows who is tracked, with their states, and who goes", async () => {
  const [ann, bob] = [await signedIn(), await signedIn()];
  const [own, watched] = [ann.presence<{ mood: string }>("lobby"), bob.presence<{ mood: string }>("lobby")];
  const moods = () => watched.users.map(({ state }) => state.mood);
  let changes = 0;
  const stop = watched.subscribe(() => changes++);
  await own.track({ mood: "fine" });
  await until("it is seen", () => moods().join() === "fine");
  expect(watched.users[0]?.userId).toBe(ann.auth.user?.id ?? "");
  expect(watched.status).toBe("live");
  const before = watched.users;
  await own.track({ mood: "better" });
  await until("the change is seen", () => moods().join() === "better");
  expect(before[0]?.state.mood).toBe("fine");
  await bob.presence("lobby").track({ mood: "here" });
  await until("both are there", () => moods().length === 2);
  await own.untrack();
  await until("one is left", () => moods().join() === "here");
  expect(changes).toBeGreaterThan(3);
  stop();
  expect(watched.users).toEqual([]);
  ann.close();
  bob.close();
});

test("[TC97] tracking and listening come back after a lost connection; offline is said", async () => {
  const [ann, bob] = [await signedIn(proxy.url), await signedIn()];
  const watched = bob.presence("cut");
  const own = ann.presence("cut");
  watched.subscribe(() => {});
  const statuses: string[] = [];
  own.subscribe(() => statuses.push(own.status));
  await own.track({ at: 1 });
  await until("it is seen", () => watched.users.length === 1 && own.users.length === 1);
  const first = watched.users[0]?.connectionId;
  proxy.cut();
  await until("it is there again", () => watched.users.some(({ connectionId }) => connectionId !== first));
  await until("it listens again", () => own.status === "live");
  expect(statuses).toContain("offline");
  await until("it sees itself again", () => own.users.some(({ connectionId }) => connectionId !== first));
  ann.close();
  bob.close();
});

test("[TC97] who untracks before there is a connection is not shown", async () => {
  const [ann, bob] = [await signedIn(), await signedIn()];
  const watched = bob.presence("brief");
  const stop = watched.subscribe(() => {});
  const own = ann.presence("brief");
  await Promise.all([own.track({ mood: "gone" }), own.untrack()]);
  // Behind both on the same connection.
  await ann.presence("other").track({});
  await bob.presence("brief").track({ mood: "here" });
  await until("the channel is known", () => watched.users.length > 0);
  expect(watched.users.map(({ state }) => state)).toEqual([{ mood: "here" }]);
  stop();
  ann.close();
  bob.close();
});

test("[TC122] what was still loading when the client was closed opens no connection", async () => {
  for (const use of [
    (client: Watched) => void client.presence("lobby").subscribe(() => {}),
    (client: Watched) =>
      void client
        .presence("lobby")
        .track({})
        .catch(() => {}),
    (client: Watched) => void client.broadcast("chat").on("said", () => {}),
    (client: Watched) =>
      void client
        .rooms("quiz")
        .join("closed")
        .catch(() => {}),
  ]) {
    const opened: WebSocket[] = [];
    const client = createClient({ url: platform.url, store: memoryStore(), webSocket: watched(opened) });
    await client.auth.signInAnonymously();
    use(client);
    client.close();
    await Bun.sleep(LOADING_MS);
    expect(opened).toEqual([]);
  }
});

test("[TC98] what waits for a connection is not sent as another user", async () => {
  let isOpen = false;
  const WebSocketClass = class extends WebSocket {
    constructor(url: string) {
      super(isOpen ? url : "ws://127.0.0.1:1");
    }
  };
  const ann = createClient({ url: platform.url, store: memoryStore(), webSocket: WebSocketClass });
  await ann.auth.signInAnonymously();
  const bob = await signedIn();
  const heard: unknown[] = [];
  const chat = bob.broadcast("chat");
  const stop = chat.on("said", (payload) => heard.push(payload));
  await until("it is heard", () => chat.status === "live");
  const code = codeOf(ann.broadcast("chat").send("said", { by: "the first" }));
  await Bun.sleep(50);
  await ann.auth.signInAnonymously();
  isOpen = true;
  await ann.broadcast("chat").send("said", { by: "the second" });
  await until("the second is heard", () => heard.length > 0);
  expect([heard, await code]).toEqual([[{ by: "the second" }], "unauthenticated"]);
  stop();
  ann.close();
  bob.close();
});

test("[TC98] a broadcast reaches those who listen to its event, and the sender only with toSelf", async () => {
  const [ann, bob] = [await signedIn(proxy.url), await signedIn()];
  const heard: unknown[] = [];
  const own: unknown[] = [];
  const stop = bob.broadcast("chat").on<{ text: string }>("said", ({ text }) => heard.push(text));
  ann.broadcast("chat").on("said", (payload) => own.push(payload));
  await until("both listen", () => ann.broadcast("chat").status === "live" && bob.broadcast("chat").status === "live");
  await ann.broadcast("chat").send("said", { text: "one" });
  await ann.broadcast("chat").send("other", { text: "none" });
  await ann.broadcast("chat").send("said", { text: "two" }, { toSelf: true });
  await until("it is heard", () => heard.length === 2 && own.length === 1);
  expect([heard, own]).toEqual([["one", "two"], [{ text: "two" }]]);
  proxy.cut();
  await until("the loss is noticed", () => ann.broadcast("chat").status === "offline");
  // It waits for the connection.
  await ann.broadcast("chat").send("said", { text: "three" });
  await until("it is heard", () => heard.length === 3);
  stop();
  await bob.broadcast("chat").send("said", { text: "back" });
  await until("the listener is back", () => own.length === 2);
  expect(heard).toHaveLength(3);
  ann.close();
  bob.close();
});

test("[TC99] what the rules refuse is an error: of a message, of tracking, of a subscription", async () => {
  const client = await signedIn();
  expect(await codeOf(client.broadcast("chat").send("forbidden"))).toBe("forbidden");
  expect(await codeOf(client.presence("staff").track({}))).toBe("forbidden");
  expect(await codeOf(client.presence("lobby").track({ text: "x".repeat(2_000) }))).toBe("too_large");
  for (const channel of [client.presence("staff"), client.broadcast("staff")]) {
    channel.subscribe(() => {});
    if ("on" in channel) channel.on("x", () => {});
    await until("it is denied", () => channel.status === "denied");
    expect(channel.error?.code).toBe("forbidden");
  }
  const nobody = createClient({ url: platform.url, store: memoryStore() });
  expect(await codeOf(nobody.broadcast("chat").send("said"))).toBe("unauthenticated");
  const channel = nobody.presence("lobby");
  channel.subscribe(() => {});
  await until("it is denied", () => channel.status === "denied");
  expect(channel.error?.code).toBe("unauthenticated");
  client.close();
  nobody.close();
});

test("[TC97] signing out ends what is tracked and shown", async () => {
  const [ann, bob] = [await signedIn(), await signedIn()];
  const watched = bob.presence("leaving");
  watched.subscribe(() => {});
  await ann.presence("leaving").track({});
  await until("it is seen", () => watched.users.length === 1);
  await ann.auth.signOut();
  await until("it is gone", () => watched.users.length === 0);
  ann.close();
  bob.close();
});
