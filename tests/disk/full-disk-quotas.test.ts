import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signIn, testPlatform } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const PAGE_BYTES = 4096;
/** More pages than a new instance and its count take. */
const PAGES_MAX = 48;
const PAGES_STEP = 3;

const disk = mountSmallDisk(16);
afterAll(() => disk?.unmount());
if (disk === null) console.warn("no quota on a nearly full disk is tested: this process may not mount one");

test.if(disk !== null)(
  "[TB452] an instance that a full disk keeps from being made counts for nobody",
  async () => {
    const directory = disk?.directory ?? "";
    const access = { insert: true, read: true };
    const tenants = {
      ...{ instance: true, access: { create: true, open: true }, tables: { lines: { access } } },
      quota: { instancesPerUser: PAGES_MAX },
    };
    const platform = await testPlatform({ config: { databases: { tenants } }, args: ["--data", directory] });
    const user = await signIn(platform);
    const line = (tenant: string) => user.post(`/api/db/tenants/${tenant}/tables/lines`, { text: "x" });
    expect((await line("known")).status).toBe(201);
    const spare = join(directory, "spare");
    const refused: string[] = [];
    for (let pages = 0; pages < PAGES_MAX; pages += PAGES_STEP) {
      disk?.free();
      writeFileSync(spare, Buffer.alloc(pages * PAGE_BYTES));
      disk?.fill();
      rmSync(spare);
      const { status } = await line(`new${pages}`);
      expect([pages, [201, 507].includes(status)]).toEqual([pages, true]);
      if (status === 507) refused.push(`new${pages}`);
    }
    disk?.free();
    expect(refused.length).toBeGreaterThan(3);
    const files = () =>
      readdirSync(join(directory, "databases", "tenants"))
        .filter((name) => name.endsWith(".db"))
        .map((name) => name.slice(0, -".db".length));
    // Up to the quota: counts that could not be removed on the full disk refuse nothing.
    for (let index = 0; files().length < PAGES_MAX; index++) {
      expect([index, (await line(refused[index] ?? `more${index}`)).status]).toEqual([index, 201]);
    }
    expect((await line("over")).status).toBe(413);
    using sqlite = new Database(join(directory, "system.db"), { readonly: true });
    const counted = sqlite.query<{ instanceId: string }, []>("SELECT instanceId FROM instance_creators").all();
    expect(counted.map(({ instanceId }) => instanceId).toSorted()).toEqual(files().toSorted());
    await platform.stop();
  },
  60_000,
);
