import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const access = "access: { read: true, insert: true, update: true, delete: true }";
const config = (table: string) => `{ databases: { shared: { tables: { ${table} } } } }`;
const P = "/api/db/shared/tables/places";

async function found(platform: TestPlatform, filter: JsonValue): Promise<unknown> {
  const { body } = await platform.get<ListAnswer>(P, { query: { filter: JSON.stringify(filter) } });
  return body.items?.map(({ id }) => id);
}

const around = (lat: number): JsonValue => [["at", "within", { lat, lng: 0, meters: 1000 }]];

test("[TB753] existing records get their index: added fields, migrations, rebuilt tables; former ones go", async () => {
  const platform = await testPlatform({ config: config(`places: { schema: { n: { type: "json" } }, ${access} }`) });
  try {
    const inserts = [1, 2].map((n) => ({ id: `p${n}`, n: { lat: n, lng: 0 } }));
    expect((await platform.post(`${P}/batch`, { inserts })).status).toBe(200);
    const added = `n: { type: "json" }, at: { type: "geo", required: true, default: { lat: 9, lng: 0 } }`;
    await platform.restart({ config: config(`places: { schema: { ${added} }, ${access} }`) });
    expect(await found(platform, around(9))).toEqual(["p1", "p2"]);

    const up = `UPDATE places SET "at" = "n" WHERE "id" = 'p1'`;
    const migrations = `migrations: [{ version: 1, description: "moves", up: ${JSON.stringify(up)} }]`;
    const moved = `n: { type: "json" }, at: { type: "geo" }, s: { type: "string" }`;
    await platform.restart({ config: config(`places: { schema: { ${moved} }, ${migrations}, ${access} }`) });
    expect([await found(platform, around(9)), await found(platform, around(1))]).toEqual([["p2"], ["p1"]]);
    expect((await platform.patch(`${P}/p1`, { at: { lat: 50, lng: 0 } })).status).toBe(200);
    expect((await platform.delete(`${P}/p2`)).status).toBe(200);
    expect([await found(platform, around(9)), await found(platform, around(50))]).toEqual([[], ["p1"]]);

    const drop = `ALTER TABLE places DROP COLUMN "at"`;
    const dropping = `${migrations.slice(0, -1)}, { version: 2, description: "drops it", up: ${JSON.stringify(drop)} }]`;
    await platform.restart({
      config: config(`places: { schema: { n: { type: "json" }, s: { type: "string" } }, ${dropping}, ${access} }`),
    });
    expect((await platform.post(P, { id: "p3" })).status).toBe(201);
    const file = new Database(join(platform.dataDirectory, "databases", "shared.db"), { readonly: true });
    const left = file.query("SELECT name FROM sqlite_master WHERE name LIKE '%_geo%'").all();
    file.close();
    expect(left).toEqual([]);
  } finally {
    await platform.stop();
  }
}, 60_000);
