import { afterEach, expect, test } from "bun:test";
import { appendFileSync } from "node:fs";
import { platformCommand, type TestPlatform, testEnvironment, testPlatform, until } from "../../support/index.ts";

const T = "/api/db/shared/tables/notes";
const ALONE = { headers: { connection: "close" } };
const CONFIG = `{ server: { workers: 2 }, databases: { shared: { tables: { notes: { access: { read: true, insert: true } } } } } }`;

let platform: TestPlatform;
afterEach(() => platform.stop());

async function workers(): Promise<number[]> {
  const { body } = await platform.service.get<{ checks: { processes: { pid: number; role: string }[] } }>(
    "/api/health?full",
    ALONE,
  );
  return body.checks.processes.filter(({ role }) => role === "worker").map(({ pid }) => pid);
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Reads and writes until it is ended. Returns how many were answered, and which answers were wrong. */
function load() {
  let isEnded = false;
  const result: { answered: number; lost: number; wrong: string[] } = { answered: 0, lost: 0, wrong: [] };
  const client = async (): Promise<void> => {
    while (!isEnded) {
      try {
        const made = await platform.post<{ id: string }>(T, { text: "x" }, ALONE);
        if (made.status !== 201) result.wrong.push(`write ${made.status}`);
        const read = await platform.get(`${T}/${made.body.id}`, ALONE);
        if (read.status !== 200) result.wrong.push(`read ${read.status}`);
        result.answered += 2;
      } catch {
        result.lost += 1;
      }
    }
  };
  const clients = Promise.all([client(), client(), client(), client()]);
  return {
    async end() {
      isEnded = true;
      await clients;
      return result;
    },
  };
}

test("[WK40] a worker that is killed costs its connections only, and is started again", async () => {
  platform = await testPlatform({ config: CONFIG });
  const underLoad = load();
  for (let round = 0; round < 3; round++) {
    const before = await workers();
    const [victim = 0] = before;
    const isOther = async () => {
      const now = await workers().catch((): number[] => []);
      return now.length === 2 && !now.includes(victim);
    };
    process.kill(victim, "SIGKILL");
    await until("another worker listens", isOther);
  }
  const { answered, lost, wrong } = await underLoad.end();
  expect(wrong).toEqual([]);
  expect(answered).toBeGreaterThan(100);
  // Each client has had one request at a time.
  expect(lost).toBeLessThanOrEqual(3 * 4);
});

test("[WK42] a worker that gives no sign of life is replaced", async () => {
  platform = await testPlatform({ config: CONFIG });
  const [silent = 0] = await workers();
  process.kill(silent, "SIGSTOP");
  await until("the silent worker is gone", () => !lives(silent));
  await until("another worker listens", async () => (await workers().catch(() => [])).length === 2);
}, 40_000);

test("[WK41] the workers of a killed server end at once, and the next start waits for them", async () => {
  platform = await testPlatform({ config: CONFIG });
  for (let round = 0; round < 3; round++) {
    const before = await workers();
    const underLoad = load();
    await Bun.sleep(200);
    const killedAt = performance.now();
    await platform.kill("SIGKILL");
    await until("the workers are gone", () => !before.some(lives));
    const goneMs = performance.now() - killedAt;
    await underLoad.end();
    expect(goneMs).toBeLessThan(5_000);
    await platform.restart();
    expect(await workers()).toHaveLength(2);
    expect((await platform.get(T)).status).toBe(200);
  }
}, 60_000);

test("[WK43] a stop answers what was begun, and takes all processes with it", async () => {
  platform = await testPlatform({ config: CONFIG });
  const before = await workers();
  const underLoad = load();
  await Bun.sleep(200);
  expect(await platform.kill("SIGTERM")).toBe(0);
  const { answered, wrong } = await underLoad.end();
  expect(before.some(lives)).toBe(false);
  expect(answered).toBeGreaterThan(0);
  expect(wrong.filter((one) => !one.endsWith("503"))).toEqual([]);
});

test("[WK44] a worker with another config than the server's does not listen", async () => {
  platform = await testPlatform({ config: CONFIG });
  const [victim = 0] = await workers();
  appendFileSync(platform.configFile, "\n// Changed.\n");
  process.kill(victim, "SIGKILL");
  await until("the log says so", () =>
    platform.stderr().includes("the config has changed since the server has started"),
  );
  expect(await workers()).toHaveLength(1);
  for (let n = 0; n < 20; n++) expect((await platform.get(T, ALONE)).status).toBe(200);
});

test("[WK2] a port that another server uses ends the start with 1", async () => {
  platform = await testPlatform({ config: CONFIG });
  const { port } = new URL(platform.url);
  const args = ["start", "--config", platform.configFile, "--data", `${platform.dataDirectory}-2`, "--port", port];
  const second = Bun.spawn([...platformCommand(), ...args], {
    env: testEnvironment(),
    stdout: "ignore",
    stderr: "pipe",
  });
  expect(await second.exited).toBe(1);
  expect(await new Response(second.stderr).text()).toContain("EADDRINUSE");
});
