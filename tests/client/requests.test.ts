import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { clientOf, createContext } from "../../src/client/client.ts";
import { PlatformError } from "../../src/client/index.ts";
import { systemRuntime } from "../../src/client/runtime.ts";
import type { TestPlatform } from "../support/platform.ts";
import type config from "./club-config.ts";
import { type Fate, type TestProxy, testProxy } from "./proxy.ts";
import { clubClient, clubPlatform, errorOf, visitor } from "./support.ts";

let platform: TestPlatform;
let proxy: TestProxy;
beforeAll(async () => {
  platform = await clubPlatform();
  proxy = await testProxy(platform.url);
});
beforeEach(() => {
  proxy.rule = null;
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

/** Waits are real and counted, and over at once. */
function impatient(url: string, waits: number[]) {
  const runtime = {
    ...systemRuntime,
    after(delayMs: number, work: () => void) {
      // The limit of one try stays as it is.
      if (delayMs >= 30_000) return systemRuntime.after(delayMs, work);
      waits.push(delayMs);
      return systemRuntime.after(1, work);
    },
  };
  return clientOf<typeof config>(createContext({ url }, runtime));
}

test("[TC1] an address without http:// is refused at once", () => {
  for (const url of ["localhost:8787", "127.0.0.1:8787", "//localhost", ""])
    expect(() => clubClient(url)).toThrow("URL");
});

test("[TC3] an error has the server's status, message, fields and request id, and a code of its own", async () => {
  const client = await visitor(platform.url);
  const films = client.db("shared").table("films");
  const invalid = await errorOf(films.insert({ title: "x".repeat(300), rating: 1 }));
  expect(invalid).toBeInstanceOf(PlatformError);
  expect(invalid).toMatchObject({
    status: 400,
    code: "invalid",
    fields: { title: { code: "too_long" } },
    retryAfter: null,
  });
  expect((invalid as PlatformError).requestId).toBeTruthy();
  await films.insert({ id: "twice", title: "A" });
  expect(await errorOf(films.insert({ id: "twice", title: "B" }))).toMatchObject({ status: 409, code: "conflict" });
  expect(await errorOf(films.update("none", { title: "A" }))).toMatchObject({ status: 404, code: "not_found" });
  expect(await errorOf(client.auth.mfa.factors().then(() => client.auth.sessions.end("none")))).toMatchObject({
    status: 404,
  });
  const stranger = clubClient(platform.url);
  expect(await errorOf(stranger.db("shared").table("films").insert({ title: "A" }))).toMatchObject({
    status: 401,
    code: "unauthenticated",
    fields: {},
  });
});

test.each([
  [403, "forbidden"],
  [408, "timeout"],
  [412, "precondition_failed"],
  [413, "too_large"],
  [422, "invalid"],
  [500, "internal"],
  [504, "unavailable"],
  [507, "unavailable"],
] as const)("[TC3] status %i has the code %s, also with a body that is not the server's", async (status, code) => {
  proxy.next({ status, body: "<html>" });
  const error = await errorOf(clubClient(proxy.url).db("shared").table("films").count());
  expect(error).toMatchObject({ status, code, message: `HTTP ${status}`, requestId: null });
});

test("[TC3] nothing that answers is a network error, after all tries", async () => {
  proxy.rule = () => "cut before";
  const waits: number[] = [];
  const before = proxy.requests.length;
  const error = await errorOf(impatient(proxy.url, waits).db("shared").table("films").count());
  expect(error).toMatchObject({ status: 0, code: "network", requestId: null, retryAfter: null });
  expect(proxy.requests.length - before).toBe(4);
  expect(waits).toHaveLength(3);
});

test("[TC3] a signal ends a request, and the wait for its next try, with its reason", async () => {
  const films = clubClient(proxy.url).db("shared").table("films");
  const reason = new Error("left the page");
  expect(await errorOf(films.list({ signal: AbortSignal.abort(reason) }))).toBe(reason);

  const answering = new AbortController();
  proxy.rule = () => {
    answering.abort(reason);
    return new Promise<Fate>(() => {});
  };
  expect(await errorOf(films.list({ signal: answering.signal }))).toBe(reason);

  const waiting = new AbortController();
  proxy.rule = () => {
    setTimeout(() => waiting.abort(reason), 20);
    return { status: 503, headers: { "retry-after": "15" } };
  };
  expect(await errorOf(films.list({ signal: waiting.signal }))).toBe(reason);
});

test("[TC4] a GET outlives lost connections and servers that are busy for a moment", async () => {
  const waits: number[] = [];
  const films = impatient(proxy.url, waits).db("shared").table("films");
  for (const fate of ["cut before", "cut after", { status: 429 }, { status: 502 }, { status: 503 }] satisfies Fate[]) {
    proxy.next(fate, fate, fate);
    expect(await films.where("title", "==", "none").count()).toBe(0);
  }
  expect(waits).toHaveLength(15);
  const [first = 0, second = 0, third = 0] = waits;
  expect([first >= 150 && first <= 300, second >= 300 && second <= 600, third >= 600 && third <= 1200]).toEqual([
    true,
    true,
    true,
  ]);
});

test("[TC4] Retry-After is waited for; a long one is said", async () => {
  const waits: number[] = [];
  const films = impatient(proxy.url, waits).db("shared").table("films");
  proxy.next({ status: 429, headers: { "retry-after": "7" } });
  expect(await films.where("title", "==", "none").count()).toBe(0);
  expect(waits).toHaveLength(1);
  expect(waits[0]).toBeGreaterThanOrEqual(7000);
  proxy.next({ status: 429, headers: { "retry-after": "60" } });
  expect(await errorOf(films.count())).toMatchObject({ status: 429, code: "rate_limited", retryAfter: 60 });
  expect(waits).toHaveLength(1);
});

test("[TC4] other failures are final", async () => {
  for (const status of [400, 403, 404, 408, 409, 500, 504]) {
    const before = proxy.requests.length;
    proxy.next({ status });
    await errorOf(clubClient(proxy.url).db("shared").table("films").count());
    expect(proxy.requests.length - before).toBe(1);
  }
});

test("[TC4] a try that takes too long is a timeout, and the last one", async () => {
  const delays: number[] = [];
  const runtime = {
    ...systemRuntime,
    after(delayMs: number, work: () => void) {
      delays.push(delayMs);
      return systemRuntime.after(10, work);
    },
  };
  proxy.rule = () => new Promise<Fate>(() => {});
  const client = clientOf<typeof config>(createContext({ url: proxy.url }, runtime));
  const error = await errorOf(client.db("shared").table("films").count());
  expect(error).toMatchObject({ status: 0, code: "timeout" });
  expect(delays).toEqual([40_000]);
});

test("[TC5] whichever connection is lost, before or after the answer, each write is done once", async () => {
  const client = impatient(proxy.url, []);
  await client.auth.signInAnonymously();
  const films = client.db("shared").table("films");
  const mine = films.where("genre", "==", "War").where("title", "startsWith", "once ");
  const orders = [
    ["cut after"],
    ["cut before", "cut after"],
    ["cut after", "cut after", "cut before"],
  ] satisfies Fate[][];
  for (const [index, order] of orders.entries()) {
    const title = `once ${index}`;
    proxy.next(...order);
    const film = await films.insert({ title, genre: "War", year: 0 });
    proxy.next(...order);
    expect((await films.update(film.id, { year: { $op: "increment", value: 1 } })).year).toBe(1);
    proxy.next(...order);
    await films.batch({ updates: [{ id: film.id, data: { year: { $op: "increment", value: 1 } } }] });
    proxy.next(...order);
    await mine.where("title", "==", title).update({ year: { $op: "increment", value: 1 } });
    proxy.next(...order);
    await client.db("shared").transaction([
      { table: "films", action: "update", id: film.id, data: { year: { $op: "increment", value: 1 } } },
      { table: "films", action: "insert", data: { title: `${title} too`, genre: "War" } },
    ]);
    proxy.next(...order);
    await films.upsert({ id: `upserted ${index}`, title: `${title} upserted`, genre: "War" });
    expect((await films.get(film.id))?.year).toBe(4);
    expect(await mine.where("title", "startsWith", title).count()).toBe(3);
  }
});

test("[TC5] a write waits for its own first try", async () => {
  const waits: number[] = [];
  const client = impatient(proxy.url, waits);
  await client.auth.signInAnonymously();
  const inProgress = { "": { code: "idempotency_in_progress", message: "…" } };
  proxy.next({ status: 409, headers: { "retry-after": "1" }, body: { code: 409, message: "…", data: inProgress } });
  const film = await client.db("shared").table("films").insert({ title: "waited for" });
  expect(film.title).toBe("waited for");
  expect(waits).toHaveLength(1);
  expect(waits[0]).toBeGreaterThanOrEqual(1000);
  const keys = proxy.requests.slice(-2).map(({ headers }) => headers["idempotency-key"]);
  expect(keys[0]).toBeTruthy();
  expect(keys[0]).toBe(keys[1]);
});

test("[TC5] writes without a key, deletes and sign-ins are sent once", async () => {
  const stranger = clubClient(proxy.url);
  const user = await visitor(proxy.url);
  const film = await user.db("shared").table("films").insert({ title: "deleted" });
  for (const write of [
    () => stranger.db("shared").table("reviews").insert({ filmId: film.id }),
    () => user.db("shared").table("films").delete(film.id),
    () => stranger.auth.signIn({ email: "a@example.com", password: "correct horse battery" }),
  ]) {
    const before = proxy.requests.length;
    proxy.next("cut before");
    expect(await errorOf(write())).toMatchObject({ code: "network" });
    const sent = proxy.requests.slice(before);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.headers["idempotency-key"]).toBeUndefined();
  }
});
