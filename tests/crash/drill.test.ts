import { expect, test } from "bun:test";
import { testPlatform, until } from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";

// A drill under load is killed at random moments. What its writes set off waits, marked, and goes out when it is no drill any more.

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const SEED = testSeed(4_601);
const LOAD_MIN_MS = 100;
const LOAD_SPREAD_MS = 500;
const WRITERS = 8;
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

interface Job {
  state: string;
  waitingFor: string | null;
  data: { after?: { id?: string } };
}

test(`[JB46] a drill under load sends nothing, and loses nothing that waits (${ROUNDS} rounds, seed ${SEED})`, async () => {
  const delivered: string[] = [];
  const outside = Bun.serve({
    port: 0,
    async fetch(request) {
      const { data } = (await request.json()) as { data: { after: { id: string } } };
      delivered.push(data.after.id);
      return new Response(null, { status: 204 });
    },
  });
  const config = {
    databases: { shared: { tables: { notes: { access: { read: true, insert: true } } } } },
    webhooks: { hook: { on: { table: "shared.notes" }, url: `${outside.url.origin}/hook`, secret: SECRET } },
    rateLimits: { global: { requests: 1_000_000, window: 1 } },
  };
  const random = seeded(SEED);
  const drill = await testPlatform({ config, args: ["--drill"] });
  const waiting = async (): Promise<number> => {
    const metrics = await (await drill.service.fetch("/metrics")).text();
    return Number(/platform_jobs_waiting\{name="webhook:hook"\} (\d+)/.exec(metrics)?.[1] ?? 0);
  };
  const stored = async (): Promise<number> =>
    (await drill.get<{ total: number }>("/api/db/shared/tables/notes/count")).body.total;
  const acknowledged: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const writer = async (index: number): Promise<void> => {
      for (let n = 0; ; n++) {
        const id = `r${round}w${index}n${n}`;
        const status = await drill.post("/api/db/shared/tables/notes", { id }).then(
          (answer) => answer.status,
          () => 0,
        );
        if (status === 0) return;
        expect([id, status]).toEqual([id, 201]);
        acknowledged.push(id);
      }
    };
    const writers = Array.from({ length: WRITERS }, (_, index) => writer(index));
    await Bun.sleep(LOAD_MIN_MS + random.below(LOAD_SPREAD_MS));
    await drill.kill("SIGKILL");
    await Promise.all(writers);
    await drill.restart();
    const total = await stored();
    expect(total).toBeGreaterThanOrEqual(acknowledged.length);
    // One delivery for each record, whether its write was answered or not.
    await until("all deliveries wait", async () => (await waiting()) === total);
    const { jobs } = (await drill.service.get<{ jobs: Job[] }>("/api/admin/jobs")).body;
    expect(jobs.filter(({ state, waitingFor }) => state !== "waiting" || waitingFor !== "drill")).toEqual([]);
    expect(delivered).toEqual([]);
  }
  const total = await stored();
  await drill.kill("SIGTERM");
  const server = await testPlatform({ config, args: ["--data", drill.dataDirectory] });
  await until("everything is delivered", () => new Set(delivered).size === total);
  expect(acknowledged.filter((id) => !delivered.includes(id))).toEqual([]);
  await server.stop();
  await drill.stop();
  outside.stop(true);
}, 120_000);
