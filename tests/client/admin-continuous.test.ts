/** Tests of the continuous backup by the admin client. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { createAdminClient, type InstanceRestore } from "../../src/client/admin/index.ts";
import type { PlatformError } from "../../src/client/index.ts";
import { temporaryDirectory, testPlatform } from "../support/index.ts";
import { until } from "../support/until.ts";

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: PlatformError) => error.code,
  );

const counted = ({ tables }: InstanceRestore) =>
  Object.entries(tables).map(([name, count]) => [name, count.then, count.now]);

test("[TC127] the client says what can be restored, begins a verification, and restores an instance", async () => {
  const folder = JSON.stringify(join(temporaryDirectory(), "store"));
  const platform = await testPlatform({
    config: `{
      databases: { clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } } },
      backups: { continuous: { to: { folder: ${folder} }, everyMs: 250, verify: false } },
    }`,
  });
  const { url, serviceKey } = platform;
  const admin = createAdminClient({ url, serviceKey });
  expect((await admin.backups.list()).continuous).toBe(true);
  const members = admin.db("clubs", "d").table("members");
  await members.insert({ n: 1 });
  const isThere = async () => {
    const { history } = await admin.backups.continuous({ file: "clubs/d" });
    return history?.spans.length === 1;
  };
  await until("the first copies are there", () => isThere().catch(() => false));
  // The first moment may be later than the first record.
  const at = (await admin.backups.continuous()).history?.spans[0]?.to ?? "";
  await until("the moment is over", () => Date.now() > Date.parse(at) + 1);
  await members.insert({ n: 2 });
  const clubs = admin.instances("clubs");
  const preview = await clubs.restore("d", { at, preview: true });
  expect([preview.at, counted(preview)]).toEqual([at, [["members", 1, 2]]]);
  expect(counted(await clubs.restore("d", { at }))).toEqual([["members", 1, 2]]);
  expect(counted(await clubs.restore("d", { at }))).toEqual([["members", 1, 1]]);
  expect(await codeOf(clubs.restore("nobody", { at }))).toBe("not_found");
  expect(await codeOf(admin.backups.continuous({ file: "clubs/nobody" }))).toBe("not_found");
  await admin.backups.verifyContinuous();
  await until("it is verified", async () => (await admin.backups.continuous()).verified === true);
  await platform.stop();
}, 120_000);
