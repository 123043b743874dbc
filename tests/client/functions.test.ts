import { afterAll, beforeAll, expect, test } from "bun:test";
import { treaty } from "@elysiajs/eden/treaty2";
import { createClient, memoryStore } from "../../src/client/index.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import type config from "./functions-config.ts";

let platform: TestPlatform;
let proxy: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({ config: await Bun.file(new URL("functions-config.ts", import.meta.url)).text() });
  proxy = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

type Step = ((...given: unknown[]) => Step | undefined) & { readonly [name: string]: Step | undefined };

const tokenOf = async (client: { functions: { token: { get(): Promise<{ data: string | null }> } } }) =>
  (await client.functions.token.get()).data ?? "";

async function signedIn(url = platform.url, store = memoryStore()) {
  const client = createClient<typeof config>({ url, store });
  if (client.auth.user === null) await client.auth.signInAnonymously();
  return client;
}

test("[TC100] routes are called with body, parameters, query and the client's token", async () => {
  const client = await signedIn();
  const done = await client.functions.checkout.post({ orderId: "o1" });
  expect([done.status, done.data, done.error]).toEqual([200, { accepted: "o1", by: client.auth.user?.id ?? "" }, null]);
  const order = await client.functions.orders({ id: "a/b" }).get({ query: { q: "x&y" } });
  expect(order.data).toEqual({ id: "a/b", q: "x&y", at: "2026-01-02T03:04:05.000Z" });
  const root = await client.functions.get();
  expect(root.data).toBe("root");
  const file = await client.functions.upload.post({ file: new File(["12345"], "a.txt") });
  expect(file.data).toEqual({ size: 5 });
  client.close();
});

test("[TC100] a stream is read as it comes", async () => {
  const client = await signedIn();
  const { data } = await client.functions.stream.get();
  const seen: unknown[] = [];
  for await (const piece of data ?? []) seen.push(piece);
  expect(seen.join("")).toBe("onetwo");
  client.close();
});

/** Returns the result of a call, with streams read. */
async function outcomeOf(
  given: Promise<{ data: unknown; error: { status: unknown; value: unknown } | null; status: number }>,
) {
  const { data, error, status } = await given;
  const shown = data instanceof ArrayBuffer ? [...new Uint8Array(data)] : data;
  if (typeof shown !== "object" || shown === null || !(Symbol.asyncIterator in shown)) {
    return { data: shown, error: error === null ? null : [error.status, withoutId(error.value)], status };
  }
  const pieces: unknown[] = [];
  for await (const piece of shown as AsyncIterable<unknown>) pieces.push(piece);
  return { data: pieces, error: null, status };
}

const withoutId = (value: unknown) => (typeof value === "object" ? { ...value } : value);

test("[TC100] calls give what Eden Treaty gives", async () => {
  const client = await signedIn();
  const headers = { authorization: `Bearer ${await tokenOf(client)}` };
  // The types of both are the same; what is called here is told by data.
  const eden = treaty<never>(platform.url, { parseDate: false, headers }) as unknown as { api: { functions: Step } };
  const own = client.functions as unknown as Step;
  const file = (text: string) => new File([text], "a.txt");
  const calls: Record<string, (routes: Step) => unknown> = {
    root: (routes) => routes["get"]?.(),
    number: (routes) => routes["number"]?.["get"]?.(),
    flag: (routes) => routes["flag"]?.["get"]?.(),
    nothing: (routes) => routes["nothing"]?.["get"]?.(),
    bytes: (routes) => routes["bytes"]?.["get"]?.(),
    events: (routes) => routes["events"]?.["get"]?.(),
    head: (routes) => routes["number"]?.["head"]?.(),
    echo: (routes) =>
      routes["echo"]?.["get"]?.({
        query: { a: "x y+z&ä", b: [1, 2], c: null, d: undefined, e: new Date(0), f: { deep: 1 }, g: false },
        headers: { "X-Mine": "yes" },
      }),
    text: (routes) => routes["text"]?.["post"]?.("some text"),
    json: (routes) => routes["json"]?.["put"]?.({ list: [1, 2], none: null }),
    form: (routes) =>
      routes["form"]?.["post"]?.({ files: [file("123"), file("4")], names: ["a", "b"], about: { n: 1 } }),
    gone: (routes) => routes["thing"]?.({ id: 7 })?.["delete"]?.(),
    away: (routes) => routes["away"]?.["get"]?.({ fetch: { redirect: "manual" } }),
    missing: (routes) => routes["no-such-route"]?.["get"]?.(),
  };
  for (const [name, call] of Object.entries(calls)) {
    const [mine, edens] = [await outcomeOf(call(own) as never), await outcomeOf(call(eden.api.functions) as never)];
    expect({ name, ...mine }).toEqual({ name, ...edens });
  }
  expect(String(own["orders"]?.({ id: "1" })?.["~path"])).toBe("/api/functions/orders/1");
  const thrown = await client.functions.refuse.post(undefined, { throwHttpError: true }).catch((error) => error);
  expect(thrown).toMatchObject({ status: 409, value: { message: "Paid already" } });
  client.close();
});

test("[TC101] refusals are the error of the answer; without a server too", async () => {
  const client = await signedIn(proxy.url);
  const refused = await client.functions.refuse.post();
  expect([refused.data, refused.status]).toEqual([null, 409]);
  expect(refused.error?.value).toMatchObject({ code: 409, message: "Paid already" });
  // @ts-expect-error: another body
  const wrong = await client.functions.checkout.post({ order: 1 });
  expect(wrong.error?.value).toMatchObject({ data: { orderId: { code: "required" } } });
  const nobody = createClient<typeof config>({ url: platform.url, store: memoryStore() });
  expect((await nobody.functions.checkout.post({ orderId: "1" })).status).toBe(401);
  proxy.refuse(true);
  const lost = await client.functions.checkout.post({ orderId: "1" });
  proxy.refuse(false);
  expect([lost.data, lost.error?.value]).toEqual([null, expect.objectContaining({ code: "network" })]);
  client.close();
  nobody.close();
});

test("[TC101] a token that the server refuses is refreshed, and the route is called again", async () => {
  const store = memoryStore();
  const first = await signedIn(platform.url, store);
  first.close();
  const key = `platform.session@${new URL(platform.url).host}`;
  const session = JSON.parse((await store.get(key)) ?? "{}");
  const [head, body] = session.accessToken.split(".");
  // Signed by nobody: the server answers 401, and the refresh token is still good.
  await store.set(key, JSON.stringify({ ...session, accessToken: `${head}.${body}.AAAA` }));
  const client = await signedIn(platform.url, store);
  expect((await client.functions.checkout.post({ orderId: "again" })).data?.accepted).toBe("again");
  client.close();
});

test("[TC102] a WebSocket of a route carries the token; what is sent early waits until it is open", async () => {
  const client = await signedIn();
  const socket = client.functions.chat({ room: "x" }).subscribe();
  const heard: unknown[] = [];
  socket.subscribe(({ data }) => heard.push(data));
  socket.send({ text: "hello" }).send({ text: "again" });
  await until("both are answered", () => heard.length === 2);
  expect(heard).toEqual([
    { from: client.auth.user?.id, room: "x", text: "hello" },
    { from: client.auth.user?.id, room: "x", text: "again" },
  ]);
  let isClosed = false;
  socket.on("close", () => {
    isClosed = true;
  });
  socket.close();
  await until("it is closed", () => isClosed);
  client.close();
});

test("[TC102] one listener hears several types of events, and is removed from each by itself", async () => {
  const client = await signedIn();
  const socket = client.functions.chat({ room: "x" }).subscribe();
  const heard: string[] = [];
  const listener = ({ type }: { type: string }) => void heard.push(type);
  socket.on("open", listener);
  socket.on("close", listener);
  socket.off("open", listener);
  let isOpen = false;
  socket.on("open", () => {
    isOpen = true;
  });
  await until("it is open", () => isOpen);
  socket.close();
  await until("it is closed", () => heard.length > 0);
  expect(heard).toEqual(["close"]);
  client.close();
});

test("[TC102] a socket whose token cannot be refreshed reports its end, as one that is refused", async () => {
  const store = memoryStore();
  (await signedIn(proxy.url, store)).close();
  const key = `platform.session@${new URL(proxy.url).host}`;
  // As if the token had come long ago.
  await store.set(key, JSON.stringify({ ...JSON.parse((await store.get(key)) ?? "{}"), takenAt: 0 }));
  const client = await signedIn(proxy.url, store);
  proxy.refuse(true);
  let isClosed = false;
  const socket = client.functions.chat({ room: "x" }).subscribe();
  socket.on("close", () => {
    isClosed = true;
  });
  await until("it is closed", () => isClosed);
  proxy.refuse(false);
  client.close();
});
