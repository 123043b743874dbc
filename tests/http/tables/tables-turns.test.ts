import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

const P = "/api/db/shared/tables/slow";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { defineConfig } from "platform";
      let inTurn = 0;
      let most = 0;
      // What a list of many records takes, on any machine.
      const take = () => {
        if (inTurn === 0) setImmediate(() => { inTurn = 0; });
        inTurn += 1;
        most = Math.max(most, inTurn);
        const until = performance.now() + 3;
        while (performance.now() < until);
        return true;
      };
      export default defineConfig({
        databases: { shared: { tables: { slow: { schema: { n: { type: "integer" } }, access: { read: (_auth, record) => record.n === 1 && take() } } } } },
        routes: (api) => api.get("/most", () => most, { access: true }),
      });`,
  });
  await platform.service.post(P, { n: 1 });
});
afterAll(() => platform.stop());

test("[TB106] lists that come at once are read over several turns of the event loop", async () => {
  const lists = Array.from({ length: 60 }, (_, n) => platform.get<{ items: unknown[] }>(`${P}?limit=${n + 1}`));
  for (const { status, body } of await Promise.all(lists)) expect([status, body.items.length]).toEqual([200, 1]);
  const most = Number(await (await platform.fetch("/api/functions/most")).text());
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(5);
});
