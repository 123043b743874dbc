import { expect, test } from "bun:test";
import { type ListAnswer, type TestPlatform, testPlatform, until } from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 3);
const SEED = testSeed(2_026);
const WRITERS = 6;
const KILL_AFTER_ANSWERS = { min: 30, spread: 250 };
const KINDS = ["quick", "slow", "moody", "ordered"];

/** Inserting an order enqueues the job that it names; each run of a job leaves a row. */
const CONFIG = `{
  databases: { shared: { tables: {
    orders: { access: { read: true, insert: true }, hooks: {
      beforeInsert: async (auth, { kind }, app) => {
        return { kind, jobId: await app.jobs.enqueue(kind, { kind }, kind === "slow" ? { delay: 0.05 } : {}) };
      },
    } },
    runs: { schema: { jobId: { type: "string" }, attempt: { type: "integer" } }, indexes: [{ fields: ["jobId"] }] },
  } } },
  jobs: {
    quick: { retries: 1000, run: note },
    slow: { retries: 1000, concurrency: 20, run: async (job) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      await note(job);
    } },
    moody: { retries: 1000, run: async (job) => {
      if (job.attempt === 1) throw new Error("not yet");
      await note(job);
    } },
    ordered: { retries: 1000, concurrency: 1, run: note },
  },
}`;
const SOURCE = `import { defineConfig } from "platform";
const note = ({ id, attempt, app }) => app.db("shared").table("runs").insert({ jobId: id, attempt });
export default defineConfig(${CONFIG});`;

/** Posts orders until the server ends. Each answered one is an accepted job. */
async function order(platform: TestPlatform, accepted: Set<string>, pick: () => string, onAnswer: () => void) {
  for (;;) {
    try {
      const body = { kind: pick() };
      const answer = await platform.post<{ jobId: string }>("/api/db/shared/tables/orders", body);
      if (answer.status !== 201) throw new Error(`an order was answered ${answer.status}`);
      accepted.add(answer.body.jobId);
      onAnswer();
    } catch (cause) {
      if (cause instanceof Error && cause.message.startsWith("an order")) throw cause;
      return;
    }
  }
}

interface Listed {
  id: string;
  state: string;
}

async function jobsIn(platform: TestPlatform, state: string): Promise<Listed[]> {
  const found: Listed[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: Record<string, string> = cursor === "" ? { state, limit: "200" } : { state, limit: "200", cursor };
    type Page = { jobs: Listed[]; cursor: string | null };
    const { body }: { body: Page } = await platform.service.get<Page>("/api/admin/jobs", { query });
    found.push(...body.jobs);
    cursor = body.cursor;
  }
  return found;
}

/** Waits until all jobs have ended: those that wait for a retry need not wait longer. */
async function finish(platform: TestPlatform): Promise<void> {
  await until("every job has ended", async () => {
    const waiting = await jobsIn(platform, "waiting");
    for (const { id } of waiting) await platform.service.post(`/api/admin/jobs/${id}/run-now`, undefined);
    return waiting.length === 0 && (await jobsIn(platform, "running")).length === 0;
  });
}

async function runsOf(platform: TestPlatform): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let after: string | null = ""; after !== null; ) {
    const query: Record<string, string> = after === "" ? { limit: "1000" } : { limit: "1000", after };
    const url = "/api/db/shared/tables/runs";
    const { body }: { body: ListAnswer } = await platform.service.get<ListAnswer>(url, { query });
    for (const item of body.items) {
      const jobId = String(item["jobId"]);
      counts.set(jobId, (counts.get(jobId) ?? 0) + 1);
    }
    after = body.cursor;
  }
  return counts;
}

test(`[JB1, JB6, JB22] a server killed at any moment runs every job that it accepted (seed ${SEED}, ${ROUNDS} rounds)`, async () => {
  const random = seeded(SEED);
  const platform = await testPlatform({ config: SOURCE });
  const accepted = new Set<string>();
  let interrupted = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { promise: isTime, resolve: kill } = Promise.withResolvers<void>();
    let left = KILL_AFTER_ANSWERS.min + random.below(KILL_AFTER_ANSWERS.spread);
    const onAnswer = () => {
      left -= 1;
      if (left === 0) kill();
    };
    const pick = () => KINDS[random.below(KINDS.length)] ?? "quick";
    const orders = Array.from({ length: WRITERS }, () => order(platform, accepted, pick, onAnswer));
    await Promise.race([isTime, Promise.all(orders)]);
    await platform.kill("SIGKILL");
    await Promise.all(orders);
    await platform.restart();
    interrupted += (await jobsIn(platform, "waiting")).length + (await jobsIn(platform, "running")).length;
    if (random.chance(0.5)) await finish(platform);
  }
  await finish(platform);
  const runs = await runsOf(platform);
  const done = new Set((await jobsIn(platform, "done")).map(({ id }) => id));
  expect([...accepted].filter((id) => !runs.has(id) || !done.has(id))).toEqual([]);
  expect(await jobsIn(platform, "failed")).toEqual([]);
  const again = [...runs.values()].filter((count) => count > 1).length;
  console.log(`${accepted.size} accepted jobs, ${interrupted} left to a restart, ${again} ran more than once`);
  // The server died with jobs under way.
  expect(accepted.size).toBeGreaterThanOrEqual(ROUNDS * KILL_AFTER_ANSWERS.min);
  expect(interrupted).toBeGreaterThan(0);
  expect(await platform.stop()).toBe(0);
}, 900_000);
