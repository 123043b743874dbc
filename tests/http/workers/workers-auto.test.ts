import { expect, test } from "bun:test";
import { testPlatform } from "../../support/index.ts";

const T = "/api/db/shared/tables/notes";
const CONFIG = `{ databases: { shared: { tables: { notes: { access: { read: true, insert: true } } } } } }`;
const CLIENTS = 24;

interface Process {
  pid: number;
  role: string;
  requests: number;
}

test("[WK60] [WK61] a server alone starts a worker when it is busy, which gets its part of kept connections", async () => {
  const platform = await testPlatform({ config: CONFIG });
  const processes = async (): Promise<Process[]> =>
    (await platform.service.get<{ checks: { processes: Process[] } }>("/api/health?full")).body.checks.processes;
  for (let n = 0; n < 5; n++) {
    const inserts = Array.from({ length: 100 }, (_, index) => ({ n: n * 100 + index, text: "x" }));
    expect((await platform.service.post(`${T}/batch`, { inserts })).status).toBe(200);
  }
  expect((await processes()).map(({ role }) => role)).toEqual(["main"]);
  let isEnded = false;
  const wrong: number[] = [];
  const client = async (first: number): Promise<void> => {
    for (let n = first; !isEnded; n++) {
      const filter = encodeURIComponent(JSON.stringify([["n", ">=", n % 250]]));
      const { status, body } = await platform.get<{ items: unknown[] }>(`${T}?filter=${filter}&limit=250&total=false`);
      if (status !== 200 || body.items.length !== 250) wrong.push(status);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index * 10)));
  // The server looks at ten seconds, which is more than `until` waits.
  while ((await processes()).length < 2) await Bun.sleep(100);
  const isEven = async (): Promise<boolean> => {
    const before = await processes();
    await Bun.sleep(500);
    const since = (await processes()).map(({ requests }, place) => requests - (before[place]?.requests ?? 0));
    return since.length > 1 && since.every((count) => count > since.reduce((sum, each) => sum + each) / 5);
  };
  while (!(await isEven()));
  isEnded = true;
  await clients;
  expect(wrong).toEqual([]);
  await platform.stop();
}, 120_000);
