import { afterAll, expect, test } from "bun:test";
import { testPlatform, until } from "../../support/index.ts";
import { startSilentDns } from "../../support/silent-dns.ts";

const HOSTS = 20;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwZ3M8xZ3oP1c=";

const dns = await startSilentDns("127.77.0.54");
afterAll(() => dns?.stop());
if (dns === null) console.warn("names that are not answered are not tested: this process may not have a name server");

test.if(dns !== null)(
  "[WH11] a name server that is silent delays no write, however many hosts webhooks have",
  async () => {
    const on = { table: "shared.orders", events: ["insert"] };
    const webhooks = Array.from({ length: HOSTS }, (_, index) => [
      `receiver${index}`,
      { url: `http://receiver${index}.example/hook`, secret: SECRET, on },
    ]);
    const platform = await testPlatform({
      config: `{ databases: { shared: { tables: { orders: {} } } }, kv: { notes: {} }, webhooks: ${JSON.stringify(Object.fromEntries(webhooks))} }`,
      prefix: dns?.prefix ?? [],
    });
    expect((await platform.service.post("/api/db/shared/tables/orders", { id: "a" })).status).toBe(201);
    await until("the name server is asked", () => (dns?.asked ?? 0) > 0);
    let written = 0;
    const write = async (): Promise<void> => {
      for (let value = 0; value < 20; value++) {
        expect((await platform.service.post("/api/kv/notes", { action: "set", key: "a", value })).status).toBe(200);
        written += 1;
      }
    };
    const writing = write();
    try {
      await until("writes are answered", () => written === 20);
    } finally {
      dns?.answer();
      await writing;
      await platform.stop();
    }
  },
);

test("[WH11] with a proxy, receivers are found by it alone", async () => {
  const asked: string[] = [];
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      asked.push(url);
      return new Response();
    },
  });
  const url = "http://receiver.invalid/hook";
  const platform = await testPlatform({
    config: {
      databases: { shared: { tables: { orders: {} } } },
      webhooks: { erp: { url, secret: SECRET, on: { table: "shared.orders", events: ["insert"] } } },
    },
    env: { HTTP_PROXY: proxy.url.origin },
  });
  try {
    expect((await platform.service.post("/api/db/shared/tables/orders", { id: "a" })).status).toBe(201);
    await until("it is delivered", () => asked.length > 0);
    expect(asked).toEqual([url]);
  } finally {
    await platform.stop();
    await proxy.stop(true);
  }
});
