import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { users } from "../../../schema/auth.ts";
import { temporaryDirectory } from "../../../tests/support/index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { reading, writing } from "./declare-query.ts";
import { createStorageEngine } from "./engine.ts";
import { openSystemFile } from "./system.ts";
import type { OpenedFile, StorageEngine } from "./types.ts";

let engine: StorageEngine;
let file: OpenedFile;
beforeAll(() => {
  engine = createStorageEngine({ clock: systemClock });
  file = openSystemFile(engine, temporaryDirectory());
});
afterAll(() => engine.stop());

type User = typeof users.$inferSelect;

const insertUser = writing((db, v: Pick<User, "id" | "emailVerified" | "metadata" | "createdAt">) =>
  db
    .insert(users)
    .values({
      id: v.id,
      emailVerified: v.emailVerified,
      metadata: v.metadata,
      createdAt: v.createdAt,
      updatedAt: v.createdAt,
    })
    .returning(),
);
const userById = reading((db, v: { id: string }) => db.select().from(users).where(eq(users.id, v.id)));
const deleteUser = writing((db, v: { id: string }) => db.delete(users).where(eq(users.id, v.id)));

const ANN = { id: "ann", emailVerified: true, metadata: { a: [1, null] }, createdAt: 7 };

test("[DB165] values are encoded and rows decoded as the schema declares, in a transaction and on the file", async () => {
  const [inserted, read] = await file.write(
    (tx) => [insertUser.get(tx, ANN), userById.get(tx, { id: "ann" })] as const,
  );
  expect(inserted).toMatchObject({ ...ANN, role: "user", disabled: false, email: null, appMetadata: {}, updatedAt: 7 });
  expect(read).toEqual(inserted);
  expect(userById.all(file, { id: "ann" })).toEqual([inserted as User]);
  expect(file.query("SELECT emailVerified, metadata FROM users").values()).toEqual([[1, '{"a":[1,null]}']]);
  expect(await file.write((tx) => [deleteUser.run(tx, { id: "ann" }), deleteUser.run(tx, { id: "ann" })])).toEqual([
    1, 0,
  ]);
  expect([userById.get(file, { id: "ann" }), userById.all(file, { id: "ann" })]).toEqual([null, []]);
});

test("[DB165] values that were encoded before a transaction are written in it", async () => {
  const inserts = ["1", "2"].map((id) => insertUser.encoded({ ...ANN, id }));
  expect(await file.write((tx) => inserts.map((insert) => insert(tx)))).toEqual([1, 1]);
  expect(userById.get(file, { id: "2" })?.metadata).toEqual(ANN.metadata);
});

test("[DB166] a column whose SQL name differs from its property is refused when the query is declared", () => {
  const unnamed = reading((db) => db.select({ seq: users.id }).from(users));
  expect(() => unnamed.text).toThrow('the column seq of a query needs .as("seq")');
  const computed = reading((db) => db.select({ n: sql<number>`1 + 1` }).from(users));
  expect(() => computed.text).toThrow('.as("n")');
});

test("[DB166] the executable contains each query of the sources as SQL", async () => {
  const root = join(import.meta.dir, "../../..");
  const { queryTexts } = await import("../../../scripts/query-texts.ts");
  const modules = [...new Bun.Glob("src/server/areas/*/statements/*.ts").scanSync({ cwd: root, absolute: true })];
  expect(modules.length).toBeGreaterThan(0);
  const built = await Bun.build({ entrypoints: modules, target: "bun", plugins: [queryTexts] });
  for (const output of built.outputs) expect(await output.text()).not.toContain("drizzle");
});
