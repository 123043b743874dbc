import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { compiler } from "../../../scripts/typescript.ts";
import { platformCommand, type TestPlatform } from "../../support/index.ts";
import { PASSWORD } from "./demo-world.ts";
import { type Moved, moved, started } from "./moved.ts";
import { shopWorld } from "./shop-world.ts";

setDefaultTimeout(120_000);

let world: Awaited<ReturnType<typeof shopWorld>>;
let made: Moved;
let platform: TestPlatform;
beforeAll(async () => {
  world = await shopWorld();
  await world.pb.stop();
  // PocketBase itself clears references; a hand or an old release has left this one.
  using database = new Database(join(world.pb.folder, "data.db"));
  database.run("UPDATE orders SET product = 'nosuchproduct00' WHERE count = 3");
  made = await moved(world.pb.folder);
  platform = await started(made);
});
afterAll(() => platform?.stop());

const signIn = (name: string) =>
  platform.post("/api/auth/signin", { email: `${name}@example.com`, password: PASSWORD });

test("[MG5] the config passes platform check and TypeScript", () => {
  const file = join(made.directory, "platform.config.ts");
  const checked = Bun.spawnSync([
    ...platformCommand(),
    "check",
    "--config",
    file,
    "--data",
    join(made.directory, "data"),
  ]);
  expect([checked.exitCode, checked.stdout.toString()]).toEqual([0, expect.stringContaining("is fine")]);
  // The types that `init` writes beside a config.
  Bun.spawnSync([...platformCommand(), "init", made.directory]);
  const { exitCode, stdout } = Bun.spawnSync([...compiler(), "-p", join(made.directory, "tsconfig.json")]);
  expect([exitCode, stdout.toString()]).toEqual([0, ""]);
});

test("[MG14] a reference to a record that does not exist is null, and reported", async () => {
  const { body } = await platform.service.get(`/api/db/shared/tables/orders/${world.orderIds[2]}`);
  expect(body).toMatchObject({ product: null, count: 3 });
  expect(made.report).toContain(
    "**orders.product**: 1 references to records that do not exist, such as nosuchproduct00",
  );
  expect(made.config).toContain(
    'team: { references: "teams", required: true, onDelete: "restrict", mayBeHidden: true }',
  );
});

test("[MG15] stored values beyond later bounds stay, and new ones are checked", async () => {
  const { body } = await platform.service.get(`/api/db/shared/tables/products/${world.lamp}`);
  expect(body).toMatchObject({ code: "a long code", origin: "" });
  const path = `/api/db/shared/tables/products/${world.draft}`;
  expect((await platform.service.patch(path, { code: "longer" })).status).toBe(400);
  expect(made.report).toContain("**products.code**: has 1 stored values beyond its bounds");
  expect(made.report).toContain("**products.origin**: is not required here: 2 stored records have no value");
});

test("[MG20] everybody signs in with the password of before", async () => {
  for (const name of ["owner", "member", "stranger"] as const) {
    expect(await signIn(name)).toMatchObject({ status: 200, body: { user: { id: world.ids[name], role: "user" } } });
  }
});

test("[MG23] another auth collection becomes accounts of its role, and a table", async () => {
  const { body } = await platform.service.get(`/api/auth/admin/users/${world.ids.clerk}`);
  expect(body).toMatchObject({ email: "clerk@example.com", role: "staff" });
  const record = await platform.service.get(`/api/db/shared/tables/staff/${world.ids.clerk}`);
  expect(record.body).toMatchObject({ id: world.ids.clerk, rank: 5 });
  expect((await platform.service.get(`/api/auth/admin/users/${world.ids.twin}`)).status).toBe(404);
  expect((await platform.service.get(`/api/db/shared/tables/staff/${world.ids.twin}`)).status).toBe(404);
  expect(made.report).toContain(`the account ${world.ids.twin}: its address belongs to an account of users`);
});

test("[MG24] accounts that an authRule keeps out are disabled", async () => {
  expect(await signIn("intern")).toMatchObject({ status: 403, body: { message: "Account is disabled" } });
});
