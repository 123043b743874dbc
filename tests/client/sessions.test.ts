import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { clientOf, createContext } from "../../src/client/client.ts";
import { type ClientOptions, memoryStore, type Store, type User } from "../../src/client/index.ts";
import { type Runtime, systemRuntime } from "../../src/client/runtime.ts";
import type { TestPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import type config from "./club-config.ts";
import { type Fate, type TestProxy, testProxy } from "./proxy.ts";
import { clubClient, clubPlatform, errorOf, visitor } from "./support.ts";

const TOKEN_LIFETIME_MS = 300_000;
const DAY_MS = 86_400_000;

let platform: TestPlatform;
let proxy: TestProxy;
beforeAll(async () => {
  platform = await clubPlatform((text) =>
    text
      .replace("anonymous: true", "anonymous: true, session: { accessTokenTtl: 300 }")
      .replace("defineConfig({", "defineConfig({ rateLimits: { signup: { requests: 1_000, window: 60 } },"),
  );
  proxy = await testProxy(platform.url);
});
beforeEach(() => {
  proxy.rule = null;
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

/** A machine whose clock is wrong by `skewMs`, which may change. */
function machine(skewMs = 0): Runtime & { skewMs: number } {
  const runtime = { ...systemRuntime, skewMs, now: () => systemRuntime.now() + runtime.skewMs };
  return runtime;
}
const clientOn = (runtime: Runtime, options: Omit<ClientOptions, "url"> & { url?: string } = {}) =>
  clientOf<typeof config>(createContext({ url: proxy.url, ...options }, runtime));

/** A store as a user may bring one: without a lock, without events. */
function plainStore({ isAsync = false } = {}): Store & { values: Map<string, string> } {
  const values = new Map<string, string>();
  const given = <T>(value: T): T | Promise<T> => (isAsync ? Promise.resolve(value) : value);
  return {
    values,
    get: (key) => given(values.get(key) ?? null),
    set: (key, value) => given(void values.set(key, value)),
    remove: (key) => given(void values.delete(key)),
  };
}

const refreshes = (from: number) =>
  proxy.requests.slice(from).filter(({ path }) => path === "/api/auth/refresh").length;

test("[TC20] a client that starts with a stored session has its user at once, or at ready; changes are heard", async () => {
  for (const isAsync of [false, true]) {
    const store = plainStore({ isAsync });
    const first = await visitor(platform.url, { store });
    const heard: (User | null)[] = [];
    const stop = first.auth.subscribe((user) => heard.push(user));
    await first.auth.updateMe({ displayName: "Ada" });
    expect(first.auth.user?.displayName).toBe("Ada");

    const second = clubClient(platform.url, { store });
    if (!isAsync) expect(second.auth.user).toEqual(first.auth.user);
    else expect(second.auth.user).toBeNull();
    await second.auth.ready;
    expect(second.auth.user).toEqual(first.auth.user);

    await first.auth.signOut();
    stop();
    await first.auth.signInAnonymously();
    expect(heard.map((user) => user?.displayName ?? null)).toEqual(["Ada", null]);
  }
});

test("[TC20] what is stored and no session counts as none", async () => {
  const store = plainStore();
  const { host } = new URL(platform.url);
  for (const text of ["", "{", "null", "7", "{}", '{"refreshToken":7}']) {
    store.values.set(`platform.session@${host}`, text);
    const client = clubClient(platform.url, { store });
    expect(client.auth.user).toBeNull();
    expect(await client.db("shared").table("films").count()).toBe(0);
  }
});

test("[TC21] a token is replaced before it expires", async () => {
  const clock = machine();
  const client = clientOn(clock);
  await client.auth.signInAnonymously();
  const start = proxy.requests.length;
  const films = client.db("shared").table("films");
  clock.skewMs = TOKEN_LIFETIME_MS / 2;
  await films.count();
  expect(refreshes(start)).toBe(0);
  clock.skewMs = TOKEN_LIFETIME_MS - 30_000;
  await films.count();
  await films.count();
  expect(refreshes(start)).toBe(1);
  expect(proxy.requests.slice(start).map(({ path }) => path.split("/").at(-1))).toEqual([
    "count",
    "refresh",
    "count",
    "count",
  ]);
});

test("[TC21] a refused token is replaced once, and the request is sent again", async () => {
  const client = clientOn(machine());
  await client.auth.signInAnonymously();
  for (const message of ["Token expired", "Invalid token"]) {
    // Access tokens of the same second are equal.
    const second = Math.floor(Date.now() / 1000);
    await until("the next second", () => Math.floor(Date.now() / 1000) > second);
    const start = proxy.requests.length;
    proxy.next({ status: 401, body: { code: 401, message } });
    expect(await client.db("shared").table("films").insert({ title: "after all" })).toMatchObject({
      title: "after all",
    });
    expect(refreshes(start)).toBe(1);
    const sent = proxy.requests.slice(start).filter(({ path }) => path.endsWith("/films"));
    expect(new Set(sent.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(sent).toHaveLength(2);
  }
  const start = proxy.requests.length;
  proxy.rule = ({ path }) =>
    path.endsWith("/films") ? { status: 401, body: { code: 401, message: "Invalid token" } } : "pass";
  expect(await errorOf(client.db("shared").table("films").list())).toMatchObject({ code: "unauthenticated" });
  expect(refreshes(start)).toBe(1);
});

test("[TC21] what one user began is not sent again as another one", async () => {
  const store = plainStore();
  const client = clientOn(machine(), { store });
  const tab = clientOn(machine(), { store });
  await client.auth.signInAnonymously();
  proxy.rule = async ({ path }): Promise<Fate> => {
    if (!path.endsWith("/films")) return "pass";
    await tab.auth.signInAnonymously();
    return { status: 401, body: { code: 401, message: "Invalid token" } };
  };
  const start = proxy.requests.length;
  const insert = client.db("shared").table("films").insert({ title: "whose" });
  expect(await errorOf(insert)).toMatchObject({ code: "unauthenticated" });
  expect(proxy.requests.slice(start).filter(({ path }) => path.endsWith("/films"))).toHaveLength(1);
  expect(client.auth.user).toEqual(tab.auth.user);
});

test("[TC21] what one user began while a token was refreshed is not done as another one", async () => {
  const store = memoryStore();
  const [runtime, other] = [machine(), clientOn(systemRuntime, { store })];
  const client = clientOn(runtime, { store });
  await client.auth.signInAnonymously();
  runtime.skewMs += TOKEN_LIFETIME_MS;
  proxy.rule = async ({ path }): Promise<Fate> => {
    if (path === "/api/auth/refresh") await other.auth.signInAnonymously();
    return "pass";
  };
  const title = "begun by the first user";
  const work = client.db("shared").table("films").insert({ title });
  expect(await errorOf(work)).toMatchObject({ status: 401, code: "unauthenticated" });
  expect(await other.db("shared").table("films").where("title", "==", title).count()).toBe(0);
  expect(client.auth.user).toEqual(other.auth.user);
});

test("[TC33] what is answered about one user does not concern another one who has signed in meanwhile", async () => {
  const [password, newPassword] = ["correct horse battery", "correct horse battery 2"];
  const changes: [path: string, work: (auth: ReturnType<typeof clientOn>["auth"]) => Promise<unknown>][] = [
    ["change-password", (auth) => auth.changePassword({ currentPassword: password, newPassword })],
    ["me", (auth) => auth.deleteMe()],
    ["link/email", (auth) => auth.link({ email: "linked-late@example.com", password })],
  ];
  for (const [path, work] of changes) {
    const store = memoryStore();
    const [client, other] = [clientOn(systemRuntime, { store }), clientOn(systemRuntime, { store })];
    if (path === "link/email") await client.auth.signInAnonymously();
    else await client.auth.signUp({ email: `${path}@example.com`, password });
    proxy.rule = async (request): Promise<Fate> => {
      if (request.path === `/api/auth/${path}`) await other.auth.signInAnonymously();
      return "pass";
    };
    await work(client.auth);
    proxy.rule = null;
    expect([path, other.auth.user]).toMatchObject([path, { isAnonymous: true, email: null }]);
    expect(client.auth.user).toEqual(other.auth.user);
    expect((await client.auth.reload())?.id).toBe(other.auth.user?.id);
  }
});

test("[TC20] a listener that throws keeps nobody else from hearing, and nothing from ending", async () => {
  const store = plainStore();
  const client = clubClient(platform.url, { store });
  await client.auth.signInAnonymously();
  const copy = plainStore();
  for (const [key, value] of store.values) copy.values.set(key, value);
  const same = clubClient(platform.url, { store: copy });
  const live = client.db("shared").table("films").live();
  await until("it is live", () => live.status === "live");
  const { queueMicrotask: real } = globalThis;
  const thrown: unknown[] = [];
  globalThis.queueMicrotask = (work) =>
    real(() => {
      try {
        work();
      } catch (error) {
        thrown.push(error);
      }
    });
  try {
    const [heard, statuses]: [unknown[], string[]] = [[], []];
    live.subscribe(() => statuses.push(live.status));
    client.auth.subscribe(() => {
      throw new Error("a mistake of the page");
    });
    client.auth.subscribe((user) => heard.push(user));
    await client.auth.signOut();
    expect(heard).toEqual([null]);
    // It was connected as the user of before.
    expect(statuses).toContain("offline");
    expect(await errorOf(same.auth.reload())).toMatchObject({ code: "unauthenticated" });
    expect(thrown).toMatchObject([{ message: "a mistake of the page" }]);
  } finally {
    globalThis.queueMicrotask = real;
    client.close();
  }
});

test("[TC21] a wrong password replaces no token", async () => {
  const client = clientOn(machine());
  await client.auth.signUp({ email: "tc21@example.com", password: "correct horse battery" });
  const start = proxy.requests.length;
  const change = client.auth.changePassword({ currentPassword: "wrong", newPassword: "correct horse battery 2" });
  expect(await errorOf(change)).toMatchObject({ code: "unauthenticated" });
  expect(proxy.requests.slice(start).map(({ path }) => path)).toEqual(["/api/auth/change-password"]);
  expect(client.auth.user?.email).toBe("tc21@example.com");
});

test("[TC21] a token that is still valid serves while the server cannot refresh it", async () => {
  const clock = machine();
  const client = clientOn(clock);
  await client.auth.signInAnonymously();
  clock.skewMs = TOKEN_LIFETIME_MS - 30_000;
  proxy.rule = ({ path }) => (path === "/api/auth/refresh" ? { status: 500 } : "pass");
  const films = client.db("shared").table("films");
  expect(await films.where("title", "==", "none").count()).toBe(0);
  clock.skewMs = TOKEN_LIFETIME_MS + 1000;
  expect(await errorOf(films.count())).toMatchObject({ code: "internal" });
  expect(client.auth.user).not.toBeNull();
  proxy.rule = null;
  expect(await films.where("title", "==", "none").count()).toBe(0);
});

test.each([
  ["a store of the client's own kind", () => memoryStore()],
  ["a plain store", () => plainStore()],
  ["an asynchronous store", () => plainStore({ isAsync: true })],
])("[TC22] ten clients with %s refresh once", async (_name, storeOf) => {
  const clock = machine();
  const store = storeOf();
  const first = clientOn(clock, { store });
  await first.auth.signInAnonymously();
  const clients = [first, ...Array.from({ length: 9 }, () => clientOn(clock, { store }))];
  await Promise.all(clients.map(({ auth }) => auth.ready));
  clock.skewMs = TOKEN_LIFETIME_MS;
  const start = proxy.requests.length;
  // A refresh that takes a while, so that all of them want one.
  proxy.rule = async ({ path }): Promise<Fate> => {
    if (path === "/api/auth/refresh") await Bun.sleep(50);
    return "pass";
  };
  const work = clients.flatMap((client) => [1, 2].map(() => client.db("shared").table("films").list()));
  expect(await Promise.all(work)).toHaveLength(20);
  expect(refreshes(start)).toBe(1);
  const used = proxy.requests.slice(start).filter(({ path }) => path.endsWith("/films"));
  expect(new Set(used.map(({ headers }) => headers.authorization)).size).toBe(1);
});

test("[TC22] the lease of a client that has died ends", async () => {
  const clock = machine();
  const store = plainStore();
  const client = clientOn(clock, { store });
  await client.auth.signInAnonymously();
  const leaseKey = `platform.refresh@${new URL(proxy.url).host}`;
  clock.skewMs = TOKEN_LIFETIME_MS;
  const start = proxy.requests.length;
  store.values.set(leaseKey, `died ${clock.now() + 15_000}`);
  const looked = Promise.withResolvers<void>();
  const { get } = store;
  store.get = (key) => {
    if (key === leaseKey) looked.resolve();
    return get(key);
  };
  const waiting = client.db("shared").table("films").list();
  await looked.promise;
  clock.skewMs += 16_000;
  await waiting;
  expect(refreshes(start)).toBe(1);
  expect(store.values.has(leaseKey)).toBe(false);

  // One that a changed clock has left far in the future is none.
  clock.skewMs += TOKEN_LIFETIME_MS;
  store.values.set(leaseKey, `died ${clock.now() + DAY_MS}`);
  await client.db("shared").table("films").list();
  expect(refreshes(start)).toBe(2);
});

test.each([
  ["a day slow", -DAY_MS],
  ["a day fast", DAY_MS],
  ["ten years fast", 3650 * DAY_MS],
])("[TC23] a clock that is %s changes nothing", async (_name, skewMs) => {
  const clock = machine(skewMs);
  const store = plainStore();
  const client = clientOn(clock, { store });
  await client.auth.signInAnonymously();
  const start = proxy.requests.length;
  for (let count = 0; count < 3; count++) await client.db("shared").table("films").list();
  await clientOn(clock, { store }).db("shared").table("films").list();
  expect(refreshes(start)).toBe(0);
  clock.skewMs += TOKEN_LIFETIME_MS;
  await client.db("shared").table("films").list();
  expect(refreshes(start)).toBe(1);
});

test("[TC23] a clock that is set while the client runs costs one refresh at most", async () => {
  for (const change of [-DAY_MS, DAY_MS]) {
    const clock = machine();
    const client = clientOn(clock);
    await client.auth.signInAnonymously();
    const start = proxy.requests.length;
    clock.skewMs = change;
    for (let count = 0; count < 3; count++) await client.db("shared").table("films").list();
    expect(refreshes(start)).toBe(1);
  }
});

test("[TC24] signing out ends the session on the server, and in the other clients of the store", async () => {
  for (const store of [memoryStore(), plainStore(), plainStore({ isAsync: true })]) {
    const client = await visitor(platform.url, { store });
    const other = clubClient(platform.url, { store });
    await other.auth.ready;
    const heard: (User | null)[] = [];
    other.auth.subscribe((user) => heard.push(user));
    const { accessToken } = JSON.parse((await store.get(`platform.session@${new URL(platform.url).host}`)) ?? "");
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);

    await client.auth.signOut();
    expect(client.auth.user).toBeNull();
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
    expect(await errorOf(other.auth.sessions.list())).toMatchObject({ code: "unauthenticated" });
    expect(other.auth.user).toBeNull();
    expect(heard).toEqual([null]);
  }
});

test("[TC24] without a connection the session ends here", async () => {
  const client = clientOn(machine());
  await client.auth.signInAnonymously();
  proxy.rule = () => "cut before";
  await client.auth.signOut();
  expect(client.auth.user).toBeNull();
});

test("[TC24] a session that has ended on the server ends with the next request", async () => {
  const store = memoryStore();
  const client = await visitor(platform.url, { store });
  const { id } = (await client.auth.sessions.list()).find(({ current }) => current) ?? { id: "" };
  const elsewhere = clubClient(platform.url, { store: memoryStore() });
  await client.auth.sessions.end(id);
  expect(await errorOf(client.db("shared").table("films").list())).toMatchObject({ code: "unauthenticated" });
  expect(client.auth.user).toBeNull();
  expect(await store.get(`platform.session@${new URL(platform.url).host}`)).toBeNull();
  // From now on the client is a stranger, who may read.
  expect(await client.db("shared").table("films").list()).toBeTruthy();
  elsewhere.close();
});

test("[TC24] who signs out during a refresh stays signed out", async () => {
  const clock = machine();
  const store = plainStore();
  const client = clientOn(clock, { store });
  await client.auth.signInAnonymously();
  clock.skewMs = TOKEN_LIFETIME_MS;
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<Fate>();
  proxy.rule = ({ path }) => {
    if (path !== "/api/auth/refresh") return "pass";
    asked.resolve();
    return answered.promise;
  };
  const reading = client.db("shared").table("films").list();
  await asked.promise;
  await client.auth.signOut();
  answered.resolve("pass");
  expect(await reading).toBeTruthy();
  expect(client.auth.user).toBeNull();
  expect([...store.values.keys()]).toEqual([]);
});

test("[TC25] one store keeps the sessions of two servers apart", async () => {
  const other = await clubPlatform();
  const store = plainStore();
  const client = await visitor(platform.url, { store });
  const stranger = clubClient(other.url, { store });
  expect(stranger.auth.user).toBeNull();
  await stranger.auth.signInAnonymously();
  expect(stranger.auth.user?.id).not.toBe(client.auth.user?.id);
  await stranger.auth.signOut();
  expect(await client.auth.reload()).toEqual(client.auth.user);
  await other.stop();
});
