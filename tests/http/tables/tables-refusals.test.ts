import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { AppError, defineConfig, Refusal } from "platform";
      const access = { read: true, insert: true, update: true, delete: true };
      const said = async (record, isAwaited) => {
        if (isAwaited) await Bun.sleep(1);
        refuse(record);
      };
      function refuse(record) {
        if (record.why === "plain") throw new Refusal("not today");
        if (record.why === "whole") throw new Refusal("out of stock", { status: 422, fields: { n: { code: "sold_out", message: "none is left" } } });
        if (record.why === "status") throw new Refusal("a secret", { status: 500 });
        if (record.why === "ours") throw new AppError(402, "pay first");
        if (record.why === "bug") return record.nothing.at.all;
        if (record.why === "secret") throw new Error("the password is hunter2");
        if (record.why === "text") throw "the password is hunter2";
        if (record.why === "null") throw null;
        if (record.why === "disk") throw Object.assign(new Error("hunter2"), { code: "SQLITE_CORRUPT" });
      }
      const schema = { why: { type: "string" }, n: { type: "integer" } };
      export default defineConfig({ databases: { shared: { tables: {
        now: { schema, access, hooks: {
          beforeInsert: (_auth, record) => { if (record.n === 1) refuse(record) },
          beforeUpdate: (_auth, record) => refuse(record), beforeDelete: (_auth, record) => refuse(record) } },
        later: { schema, access, hooks: {
          beforeInsert: (_auth, record) => record.n === 1 ? said(record, true) : undefined,
          beforeUpdate: (_auth, record) => said(record, true), beforeDelete: (_auth, record) => said(record, true) } },
      } } } });`,
  });
});
afterAll(() => platform.stop());

const REFUSALS: Record<string, object> = {
  plain: { code: 400, message: "not today" },
  whole: { code: 422, message: "out of stock", data: { n: { code: "sold_out", message: "none is left" } } },
  ours: { code: 402, message: "pay first" },
};
const FAILURES = ["status", "bug", "secret", "text", "null", "disk"];
const INTERNAL = { code: 500, message: "Internal error" };

for (const table of ["now", "later"]) {
  const P = path(table);
  const ways = (why: string) => [
    () => platform.post<ErrorAnswer>(P, { why, n: 1 }),
    () => platform.patch<ErrorAnswer>(`${P}/${why}`, { n: 2 }),
    () => platform.post<ErrorAnswer>(`${P}?upsert=true`, { id: why, n: 3 }),
    () => platform.delete<ErrorAnswer>(`${P}/${why}`),
  ];
  test(`[TB143] a refusal is the answer (${table})`, async () => {
    for (const [why, answer] of Object.entries(REFUSALS)) {
      await platform.post(P, { id: why, why });
      for (const way of ways(why)) expect((await way()).body).toEqual(answer as ErrorAnswer);
    }
    const batch = await platform.post<ErrorAnswer>(`${P}/batch`, { inserts: [{ n: 2 }, { why: "whole", n: 1 }] });
    expect(batch.body).toEqual({
      ...{ code: 422, message: "inserts.1: out of stock" },
      data: { "inserts.1.n": { code: "sold_out" as never, message: "none is left" } },
    });
    const byFilter = { action: "update", filter: [["why", "in", ["plain", "whole"]]], data: { n: 7 } };
    const kept = await platform.post(`${P}/batch-by-filter`, byFilter);
    expect(kept.body).toEqual({ processed: 2, succeeded: 0 });
  });

  test(`[TB143] any other error of a hook is a 500 without details, and logged (${table})`, async () => {
    for (const why of FAILURES) {
      await platform.post(P, { id: why, why });
      for (const way of ways(why)) {
        const { status, body } = await way();
        expect([why, status, body]).toEqual([why, 500, INTERNAL]);
      }
      const batch = await platform.post(`${P}/batch`, { inserts: [{ why, n: 1 }] });
      expect([why, batch.body]).toEqual([why, INTERNAL]);
      const byFilter = { action: "update", filter: [["why", "==", why]], data: { n: 7 } };
      expect((await platform.post(`${P}/batch-by-filter`, byFilter)).body).toEqual(INTERNAL);
    }
    expect(platform.stderr() + platform.stdout()).toContain("hunter2");
    // Other records are written meanwhile.
    expect((await platform.post(P, { n: 5 })).status).toBe(201);
  });
}
