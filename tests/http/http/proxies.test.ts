import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSocket, type TestPlatform, testPlatform, until } from "../../support/index.ts";

// The client's address behind proxies, and what is done with it: limits, service keys, the access log.

const LIMIT = 3;
const rateLimits = { global: { requests: LIMIT, window: 600 } };

const platforms: Record<"hops" | "ranges" | "elsewhere" | "header", TestPlatform> = {} as never;

beforeAll(async () => {
  const [hops, ranges, elsewhere, header] = await Promise.all([
    testPlatform({ config: { server: { trustProxy: 2, accessLog: true, hsts: true }, rateLimits } }),
    testPlatform({ config: { server: { trustProxy: ["127.0.0.0/8", "10.0.0.0/8"], hsts: 600 }, rateLimits } }),
    testPlatform({ config: { server: { trustProxy: ["10.0.0.0/8"] }, rateLimits } }),
    testPlatform({
      config: { server: { trustProxy: ["127.0.0.1"], clientAddressHeader: "CF-Connecting-IP" }, rateLimits },
    }),
  ]);
  Object.assign(platforms, { hops, ranges, elsewhere, header });
});
afterAll(() => Promise.all(Object.values(platforms).map((platform) => platform.stop())));

/** The statuses of requests, each with its own header. */
async function statuses(platform: TestPlatform, name: string, values: readonly string[]): Promise<number[]> {
  const answers: number[] = [];
  for (const value of values) answers.push((await platform.get("/api/config", { headers: { [name]: value } })).status);
  return answers;
}

const XFF = "x-forwarded-for";
/** One client is over its limit after LIMIT requests. */
const LIMITED = [200, 200, 200, 429];

test("[HT11] behind two proxies a client cannot choose its address by entries of its own", async () => {
  const invented = [1, 2, 3, 4].map((turn) => `198.51.100.${turn}, 203.0.113.1, 10.0.0.2`);
  expect(await statuses(platforms.hops, XFF, invented)).toEqual(LIMITED);
});

test("[HT11] fewer entries than proxies: all such requests are those of their connection", async () => {
  const invented = [1, 2, 3, 4].map((turn) => `198.51.100.${turn}`);
  expect(await statuses(platforms.hops, XFF, invented)).toEqual(LIMITED);
});

test("[HT11] with ranges, addresses of proxies that a client invents are skipped, and its own is found", async () => {
  const invented = [1, 2, 3, 4].map((turn) => `198.51.100.${turn}, 203.0.113.2, 10.0.0.${turn}`);
  expect(await statuses(platforms.ranges, XFF, invented)).toEqual(LIMITED);
});

test("[HT11] from a connection that is no trusted proxy no header counts", async () => {
  const invented = [1, 2, 3, 4].map((turn) => `198.51.100.${turn}`);
  expect(await statuses(platforms.elsewhere, XFF, invented)).toEqual(LIMITED);
});

test("[HT11] limits count an IPv6 client by its /64, with ranges too", async () => {
  const addresses = ["::1", "1:2:3:4", "ffff::", "a:b:c:d"].map((end) => `2001:db8:7:8:${end}`.replace(":::", "::"));
  expect(await statuses(platforms.ranges, XFF, addresses)).toEqual(LIMITED);
});

test("[HT301] the named header has the address; X-Forwarded-For and headers with two addresses have none", async () => {
  expect(await statuses(platforms.header, "cf-connecting-ip", ["192.0.2.1", "192.0.2.2"])).toEqual([200, 200]);
  const mixed: [string, string][] = [
    [XFF, "198.51.100.1"],
    ["cf-connecting-ip", "198.51.100.2, 198.51.100.3"],
    ["cf-connecting-ip", "unknown"],
    ["cf-connecting-ip", ""],
  ];
  const answers: number[] = [];
  for (const [name, value] of mixed) answers.push(...(await statuses(platforms.header, name, [value])));
  expect(answers).toEqual(LIMITED);
});

test("[HT302] every answer has Strict-Transport-Security where it is configured, and none where it is not", async () => {
  const hsts = async (platform: TestPlatform, path: string): Promise<string | null> =>
    (await platform.fetch(path, { headers: { [XFF]: `203.0.113.${path.length}, 10.0.0.1` } })).headers.get(
      "strict-transport-security",
    );
  for (const path of ["/api/health", "/nothing", "/", "/swagger", "/api/db/none/tables/none"]) {
    expect([path, await hsts(platforms.hops, path)]).toEqual([path, "max-age=31536000"]);
  }
  expect(await hsts(platforms.ranges, "/api/health")).toBe("max-age=600");
  expect(await hsts(platforms.header, "/api/health")).toBeNull();
});

test("[HT303] the access log has a line for every request, without its query, and nothing that a path can forge", async () => {
  const platform = await testPlatform({
    config: `{ server: { trustProxy: true, accessLog: true }, kv: { a: {} }, realtime: {},
      databases: { shared: { tables: { notes: { access: { read: true } } } } } }`,
  });
  const from = { headers: { [XFF]: "192.0.2.9" } };
  await platform.get("/api/db/shared/tables/notes?limit=1&token=SECRET", from);
  await platform.get('/nothing/%0a{"level":"ERROR"}', from);
  await platform.service.post("/api/kv/a", { action: "list" }, from);
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`, { [XFF]: "192.0.2.9" });
  await socket.close();
  const entries = () =>
    platform
      .stderr()
      .split("\n")
      .filter((line) => line.includes('"request"'))
      .map((line) => JSON.parse(line).properties);
  await until("the lines", () => entries().length === 4);
  expect(entries().map(({ ms, ...entry }) => [typeof ms, entry])).toEqual([
    ["number", line("GET", "/api/db/shared/tables/notes", 400, null)],
    ["number", line("GET", "/nothing/%0a%7B%22level%22:%22ERROR%22%7D", 404, null)],
    ["number", line("POST", "/api/kv/a", 200, "key root")],
    ["number", line("GET", "/api/realtime", 101, null)],
  ]);
  expect(platform.stderr()).not.toContain("SECRET");
  await platform.stop();
});

const line = (method: string, path: string, status: number, caller: string | null) => ({
  method,
  path,
  status,
  address: "192.0.2.9",
  caller,
});
