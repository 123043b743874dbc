import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

// What stands beside `references`.

const any = "access: { read: true, insert: true, update: true, delete: true }";
const CONFIG = `{ api: { schemaEndpoint: true }, databases: { shared: { tables: {
  people: { schema: { name: { type: "string" } }, access: { read: (auth) => [["name", "==", auth?.id ?? ""]] } },
  open: { schema: { to: { references: "people", mayBeHidden: true, onDelete: "setNull" } }, ${any} },
  strict: { schema: { to: { type: "string", references: "people", onDelete: "cascade" } }, ${any} },
  older: { schema: { to: { type: "string", references: { table: "people", onDelete: "set null" } } }, ${any} },
} } } }`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const path = (table: string) => `/api/db/shared/tables/${table}`;
const person = (id: string) => platform.service.post(path("people"), { id, name: "somebody else" });

test("[TB640] a reference that may be hidden is taken, another one is not; a missing one never is", async () => {
  await person("ann");
  const refer = (table: string, to: string) => user.post<ErrorAnswer>(path(table), { to });
  expect((await user.get(`${path("people")}/ann`)).status).toBe(404);
  expect((await refer("open", "ann")).status).toBe(201);
  expect((await refer("strict", "ann")).status).toBe(400);
  const missing = await refer("open", "nobody");
  expect(missing.body.data).toEqual({
    to: { code: "unknown_reference", message: 'to: there is no record of people with id "nobody"' },
  });
  const hidden = await refer("strict", "ann");
  const absent = await refer("strict", "nobody");
  expect(JSON.stringify(hidden.body).replaceAll("ann", "X")).toBe(
    JSON.stringify(absent.body).replaceAll("nobody", "X"),
  );
  const change = await user.post<{ id: string }>(path("open"), {});
  expect((await user.patch(`${path("open")}/${change.body.id}`, { to: "ann" })).status).toBe(200);
});

test("[TB641] onDelete beside references clears and deletes as it does within", async () => {
  await person("bob");
  for (const table of ["open", "strict", "older"]) {
    expect((await platform.service.post(path(table), { id: "r", to: "bob" })).status).toBe(201);
  }
  expect((await platform.service.delete(`${path("people")}/bob`)).status).toBe(200);
  const left = (table: string) => platform.service.get<{ to: string | null }>(`${path(table)}/r`);
  expect((await left("open")).body.to).toBeNull();
  expect((await left("older")).body.to).toBeNull();
  expect((await left("strict")).status).toBe(404);
});

test("[TB641] [TB642] the schema shows a reference as it is declared, as text where it has no type", async () => {
  const { body } = await platform.service.get("/api/schema");
  const text = JSON.stringify(body);
  expect(body).toMatchObject({ namespaces: { shared: { tables: { open: { fields: { to: { type: "string" } } } } } } });
  expect(text).toContain('{"table":"people","column":"id","onDelete":"set null","mayBeHidden":true}');
  expect(text).toContain('{"table":"people","column":"id","onDelete":"cascade"}');
});
