import { afterAll, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testPlatform } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const PAGE_BYTES = 4096;
/** More pages than a new instance takes: its file, its WAL, and the memory beside them. */
const PAGES_MAX = 40;

const disk = mountSmallDisk(16);
afterAll(() => disk?.unmount());
if (disk === null) console.warn("no nearly full disk is tested: this process may not mount one");

test.if(disk !== null)(
  "[DB106] with room for some pages of a new instance only, its write is 507, and it is made once there is room",
  async () => {
    const directory = disk?.directory ?? "";
    const platform = await testPlatform({
      config: { databases: { tenants: { instance: true, tables: { lines: {} } } } },
      args: ["--data", directory],
    });
    const line = (tenant: string) => platform.service.post(`/api/db/tenants/${tenant}/tables/lines`, { text: "x" });
    expect((await line("known")).status).toBe(201);
    const spare = join(directory, "spare");
    const refused: string[] = [];
    for (let pages = 0; pages < PAGES_MAX; pages += 1) {
      disk?.free();
      writeFileSync(spare, Buffer.alloc(pages * PAGE_BYTES));
      disk?.fill();
      rmSync(spare);
      const tenant = `new${pages}`;
      const { status } = await line(tenant);
      expect([pages, [201, 507].includes(status)]).toEqual([pages, true]);
      if (status === 507) refused.push(tenant);
    }
    disk?.free();
    expect(refused.length).toBeGreaterThan(3);
    for (const tenant of refused) expect([tenant, (await line(tenant)).status]).toEqual([tenant, 201]);
    await platform.stop();
  },
  60_000,
);
