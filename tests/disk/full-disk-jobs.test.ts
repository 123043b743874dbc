import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform, until } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const disk = mountSmallDisk(24);
const elsewhere = temporaryDirectory();
const log = join(elsewhere, "runs.log");
const gate = join(elsewhere, "gate");

const CONFIG = `
  import { defineConfig } from "platform";
  import { appendFileSync, existsSync } from "node:fs";
  const note = (text) => appendFileSync(${JSON.stringify(log)}, text + "\\n");
  export default defineConfig({
    databases: { shared: { tables: { orders: { access: { read: true, insert: true } } } } },
    triggers: { noticed: { on: { table: "shared.orders" }, run: ({ after }) => note("trigger " + after.id) } },
    jobs: {
      noted: { run: ({ data }) => note("job " + data) },
      gated: { run: async () => {
        note("job gated");
        while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 5));
      } },
    },
    routes: (api) => api.post("/enqueue/:name/:id", async ({ params: { name, id }, app }) =>
      ({ id: await app.jobs.enqueue(name, id) }), { access: true }),
  });`;
/** More than the files have left over in the pages that they hold. */
const BIG = "x".repeat(100_000);

const noted = (): string[] => (existsSync(log) ? readFileSync(log, "utf8").split("\n").filter(Boolean) : []);

interface Job {
  state: string;
  attempt: number;
}
const jobsOf = async (platform: TestPlatform, name: string): Promise<Job[]> =>
  (await platform.service.get<{ jobs: Job[] }>(`/api/admin/jobs?name=${name}&limit=200`)).body.jobs;

describe.if(disk !== null)("a disk that is full, with triggers and jobs", () => {
  test("[TG10] [JB17] what is refused has no run, what is acknowledged has one when there is space again", async () => {
    const platform = await testPlatform({ config: CONFIG, args: ["--data", disk?.directory ?? ""] });
    const insert = (id: string, text: string) => platform.post("/api/db/shared/tables/orders", { id, text });
    const enqueue = (name: string, id: string) => platform.post(`/api/functions/enqueue/${name}/${id}`);
    try {
      expect((await insert("first", "small")).status).toBe(201);
      expect((await enqueue("gated", "gated")).status).toBe(200);
      await until("both run", () => noted().length === 2);

      disk?.fill();
      const statuses = new Map<string, number>();
      for (let n = 0; n < 60; n++) {
        statuses.set(`trigger o${n}`, (await insert(`o${n}`, n % 3 === 0 ? "small" : BIG)).status);
        statuses.set(`job j${n}`, (await enqueue("noted", `j${n}`)).status);
      }
      const refused = [...statuses].filter(([, status]) => status === 507).map(([what]) => what);
      const acknowledged = [...statuses].filter(([, status]) => status < 300).map(([what]) => what);
      expect(refused.length + acknowledged.length).toBe(statuses.size);
      expect(refused.some((what) => what.startsWith("trigger"))).toBe(true);
      expect(refused.some((what) => what.startsWith("job"))).toBe(true);
      // It ends while nothing can be recorded.
      writeFileSync(gate, "");
      expect((await platform.get("/api/db/shared/tables/orders/first")).status).toBe(200);

      disk?.free();
      await until("the job is recorded", async () => (await jobsOf(platform, "gated"))[0]?.state === "done");
      expect((await jobsOf(platform, "gated"))[0]?.attempt).toBe(1);
      expect((await insert("last", BIG)).status).toBe(201);
      expect((await enqueue("noted", "last")).status).toBe(200);
      const wanted = [...acknowledged, "trigger last", "job last"];
      await until("all have run", () => wanted.every((what) => noted().includes(what)));
      expect(noted().filter((what) => refused.includes(what))).toEqual([]);
      expect(noted().filter((what) => what === "job gated").length).toBe(1);
    } finally {
      disk?.free();
      await platform.stop();
      disk?.unmount();
    }
  }, 120_000);
});
