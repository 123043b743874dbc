import { afterAll, beforeAll, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

// Webhooks of a server process of its own, which may be the executable; `webhooks.test.ts` has what needs a test clock.

const SECRET = `whsec_${btoa("a secret of twenty-four b")}`;
const ORDERS = "/api/db/shared/tables/orders";

interface Delivery {
  path: string;
  id: string;
  body: { type: string; data: { before: unknown; after: { id: string; kind: string } | null } };
}

const delivered: Delivery[] = [];
/** The statuses of the next answers by path; without one 204. */
const answers = new Map<string, number[]>();
let receiver: Bun.Server<undefined>;
let platform: TestPlatform;

const to = (path: string) => delivered.filter((delivery) => delivery.path === path);

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname: path } = new URL(request.url);
      const text = await request.text();
      const headers = Object.fromEntries(request.headers);
      // Throws for a wrong signature: then the delivery does not count.
      const body = new Webhook(SECRET).verify(text, headers) as Delivery["body"];
      delivered.push({ path, id: headers["webhook-id"] ?? "", body });
      const status = answers.get(path)?.shift() ?? 204;
      return new Response(null, status === 302 ? { status, headers: { location: "/elsewhere" } } : { status });
    },
  });
  const hook = (path: string, kind: string) =>
    `{ url: ${JSON.stringify(new URL(path, receiver.url).href)}, secret: ${JSON.stringify(SECRET)},
       on: { table: "shared.orders" }, filter: [["kind", "==", ${JSON.stringify(kind)}]] }`;
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { orders: {
        schema: { kind: { type: "string" } }, access: { read: true, insert: true, update: true, delete: true } } } } },
      webhooks: { plain: ${hook("/plain", "plain")}, moved: ${hook("/moved", "moved")}, gone: ${hook("/gone", "gone")} },
    }`,
  });
});
afterAll(async () => {
  await platform.stop();
  await receiver.stop(true);
});

test("[WH2] [WH3] changes are delivered, signed, with what they changed", async () => {
  await platform.post(ORDERS, { id: "o1", kind: "plain" });
  await platform.delete(`${ORDERS}/o1`);
  await until("both have arrived", () => to("/plain").length === 2);
  const types = to("/plain").map(({ body }) => body.type);
  expect(types.sort()).toEqual(["shared.orders.delete", "shared.orders.insert"]);
  const inserted = to("/plain").find(({ body }) => body.type.endsWith("insert"));
  expect(inserted?.body.data).toMatchObject({ before: null, after: { id: "o1", kind: "plain" } });
});

test("[WH4] a redirect is not followed, and the delivery is tried again with the same id", async () => {
  answers.set("/moved", [302]);
  await platform.post(ORDERS, { id: "o2", kind: "moved" });
  await until("it is tried again", () => to("/moved").length === 2);
  expect(new Set(to("/moved").map(({ id }) => id)).size).toBe(1);
  expect(to("/elsewhere")).toEqual([]);
});

test("[WH7] 410 ends the deliveries, also after a restart", async () => {
  answers.set("/gone", [410]);
  const states = async () =>
    (await platform.service.get<{ jobs: { state: string }[] }>("/api/admin/jobs?name=webhook:gone")).body.jobs.map(
      ({ state }) => state,
    );
  await platform.post(ORDERS, { id: "o3", kind: "gone" });
  await until("it has failed", async () => (await states())[0] === "failed");
  await platform.restart();
  await platform.post(ORDERS, { id: "o4", kind: "gone" });
  await until("the second one has failed", async () => (await states()).join() === "failed,failed");
  expect(to("/gone").length).toBe(1);
});

test("[TG8] [WH4] a delivery that was under way when the server was killed arrives after the restart", async () => {
  const before = to("/plain").length;
  answers.set("/plain", [503]);
  await platform.post(ORDERS, { id: "o5", kind: "plain" });
  await until("it is under way", () => to("/plain").length > before);
  await platform.kill("SIGKILL");
  await platform.restart();
  await until("it arrives", () => to("/plain").length > before + 1);
  expect(
    new Set(
      to("/plain")
        .slice(before)
        .map(({ id }) => id),
    ).size,
  ).toBe(1);
});
