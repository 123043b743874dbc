import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSocket, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const READER_KEY = "metrics-reader-key-0123456789abcdefghijk";
const OTHER_KEY = "metrics-other-key-0123456789abcdefghijkl";

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { posts: { access: { read: true } } } } },
      rooms: { game: { access: { join: true } } },
      serviceKeys: {
        reader: { key: "${READER_KEY}", scopes: ["system:*:*:read"] },
        other: { key: "${OTHER_KEY}", scopes: ["kv:namespace:*:read"] },
      },
    }`,
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

interface Family {
  type: string;
  /** Values by name and labels as written in the text. */
  samples: Map<string, number>;
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"`;
const HELP_LINE = new RegExp(`^# HELP (${NAME}) \\S.*$`);
const TYPE_LINE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`);
const SAMPLE_LINE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? ([0-9.e+-]+)$`);

/** A strict parser of text format 0.0.4: each family once, with help and type before its samples, and no sample twice. */
function parse(text: string): Map<string, Family> {
  if (!text.endsWith("\n") || text.includes("\n\n")) throw new Error("each line must end with one newline");
  const families = new Map<string, Family>();
  let helped = "";
  let current: [name: string, family: Family] | null = null;
  for (const line of text.slice(0, -1).split("\n")) {
    const help = HELP_LINE.exec(line);
    const type = TYPE_LINE.exec(line);
    const sample = SAMPLE_LINE.exec(line);
    if (help !== null) {
      helped = help[1] ?? "";
    } else if (type !== null) {
      const [, name = "", kind = ""] = type;
      if (name !== helped || families.has(name))
        throw new Error(`the family ${name} is repeated or has no help before it`);
      current = [name, { type: kind, samples: new Map() }];
      families.set(...current);
    } else if (sample !== null && current !== null) {
      const [, name = "", labels = "", value = ""] = sample;
      const [family, { type: kind, samples }] = current;
      const own = kind === "histogram" ? [`${family}_bucket`, `${family}_sum`, `${family}_count`] : [family];
      if (!own.includes(name) || samples.has(name + labels) || !Number.isFinite(Number(value))) throw new Error(line);
      samples.set(name + labels, Number(value));
    } else {
      throw new Error(`not a line of the format: ${line}`);
    }
  }
  return families;
}

async function metrics(): Promise<Map<string, Family>> {
  const response = await platform.service.fetch("/metrics");
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return parse(await response.text());
}
const value = (families: Map<string, Family>, sample: string): number | undefined =>
  families.get(sample.replace(/\{.*/, ""))?.samples.get(sample);

test("[SY7] the metrics require a service key with the scope system:*:*:read", async () => {
  const clients = [
    platform,
    user,
    platform.withKey("nonsense"),
    platform.withKey(OTHER_KEY),
    platform.withKey(READER_KEY),
  ];
  const statuses = await Promise.all(clients.map(async (client) => (await client.fetch("/metrics")).status));
  expect(statuses).toEqual([401, 401, 401, 403, 200]);
});

test("[SY8] requests are counted by area, method and status class", async () => {
  const before = await metrics();
  for (let at = 0; at < 3; at++) await platform.get("/api/db/shared/tables/posts");
  await platform.get("/api/db/shared/tables/nothing");
  await platform.get("/no/such/path");
  await user.post("/api/kv/none", {});
  const after = await metrics();
  const grown = (sample: string) => (value(after, sample) ?? 0) - (value(before, sample) ?? 0);
  expect(grown('platform_http_requests_total{area="db",method="GET",status="2xx"}')).toBe(3);
  expect(grown('platform_http_requests_total{area="db",method="GET",status="4xx"}')).toBe(1);
  expect(grown('platform_http_requests_total{area="other",method="GET",status="4xx"}')).toBe(1);
  expect(grown('platform_http_requests_total{area="kv",method="POST",status="4xx"}')).toBe(1);
  expect(grown('platform_http_requests_total{area="system",method="GET",status="2xx"}')).toBe(1);
});

test("[SY8] the histogram is cumulative; its last bucket counts all requests", async () => {
  await platform.get("/api/db/shared/tables/posts");
  const { type, samples } = (await metrics()).get("platform_http_request_duration_seconds")!;
  expect(type).toBe("histogram");
  const buckets = [...samples].filter(([name]) => name.includes('_bucket{area="db",'));
  const bounds = buckets.map(([name]) => /le="([^"]+)"/.exec(name)?.[1] ?? "");
  expect(bounds.at(-1)).toBe("+Inf");
  expect(bounds.slice(0, -1).map(Number)).toEqual(
    bounds
      .slice(0, -1)
      .map(Number)
      .toSorted((a, b) => a - b),
  );
  const counts = buckets.map(([, count]) => count);
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  expect(counts.at(-1)).toBe(samples.get('platform_http_request_duration_seconds_count{area="db"}')!);
  expect(samples.get('platform_http_request_duration_seconds_sum{area="db"}')).toBeGreaterThan(0);
});

test("[SY9] sockets, rooms, files, queues and the process are reported", async () => {
  const realtime = await openSocket(`${platform.wsUrl}/api/realtime`);
  const room = await openSocket(`${platform.wsUrl}/api/room?namespace=game&id=one`);
  room.send({ type: "auth", token: user.token });
  await room.nextOf("auth_success");
  room.send({ type: "join" });
  await room.nextOf("sync");
  const families = await metrics();
  expect(value(families, 'platform_sockets_open{area="realtime"}')).toBe(1);
  expect(value(families, 'platform_sockets_open{area="rooms"}')).toBe(1);
  expect(value(families, 'platform_http_requests_total{area="rooms",method="GET",status="1xx"}')).toBe(1);
  expect(value(families, "platform_rooms_in_memory")).toBe(1);
  expect(value(families, "platform_database_files_open")).toBeGreaterThanOrEqual(3);
  for (const name of ["platform_writes_waiting", "platform_long_reads_running", "platform_long_reads_waiting"]) {
    expect(value(families, name)).toBeGreaterThanOrEqual(0);
  }
  expect(value(families, "platform_request_log_dropped_total")).toBe(0);
  const startedAt = value(families, "process_start_time_seconds") ?? 0;
  expect(Math.abs(Date.now() / 1000 - startedAt)).toBeLessThan(600);
  expect(value(families, "platform_uptime_seconds")).toBeGreaterThan(0);
  expect(value(families, "process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
  expect(value(families, "process_cpu_seconds_total")).toBeGreaterThan(0);
  expect([...(families.get("platform_info")?.samples.keys() ?? [])]).toEqual([
    expect.stringMatching(/^platform_info\{version="\d+\.\d+\.\d+"\}$/),
  ]);
  await realtime.close();
  await room.close();
  let open = 2;
  for (let turn = 0; turn < 500 && open > 0; turn++) {
    await Bun.sleep(10);
    const now = await metrics();
    open = ["realtime", "rooms"].reduce(
      (sum, area) => sum + (value(now, `platform_sockets_open{area="${area}"}`) ?? 0),
      0,
    );
  }
  expect(open).toBe(0);
});
