/** Notes about the object store in a real PostgreSQL. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { PostgresConnection } from "../postgres/connection.ts";
import { makeSchema } from "../postgres/schema.ts";
import { compareStored, noteStored, readStored, STORED_TABLE } from "./stored-row.ts";

let postgres: TestPostgres;
let connection: PostgresConnection;
beforeAll(async () => {
  postgres = await TestPostgres.start();
  const nonce = () => crypto.randomUUID();
  connection = await PostgresConnection.open({ url: postgres.url, applicationName: "test", nonce, closed() {} });
  await makeSchema(connection, 1_000);
  await connection.run(STORED_TABLE);
  await connection.run("INSERT INTO platform.log VALUES ('core', 5, 'file', 1, 2, 'five', 'four', '')");
  await connection.run("UPDATE platform.groups SET position = 5, nonce = 'five'");
}, 60_000);
afterAll(async () => {
  connection.close();
  await postgres.stop();
});

test("[CLU101] what the owner notes of the store is read, and an earlier owner changes nothing", async () => {
  expect(await readStored(connection)).toBeNull();
  const place = { history: 0, position: 5, nonce: "five", epoch: 2 };
  const state = { ok: false, message: "it is full", place, lastCopyAt: 1_764_000_000_000 };
  await noteStored(connection, state);
  expect(await readStored(connection)).toEqual(state);
  await noteStored(connection, { ...state, ok: true, message: null, place: { ...place, epoch: 1 } });
  expect(await readStored(connection)).toEqual(state);
  const later = { ok: true, message: null, place: { ...place, epoch: 3 }, lastCopyAt: null };
  await noteStored(connection, later);
  expect(await readStored(connection)).toEqual(later);
});

test("[CLU101] a place that the log has with another content, or ends before, is noticed", async () => {
  const place = { history: 0, position: 5, nonce: "five", epoch: 2 };
  expect(await compareStored(connection, place)).toBeNull();
  expect(await compareStored(connection, { ...place, nonce: "other" })).toContain("another one in the log");
  expect(await compareStored(connection, { ...place, position: 6 })).toContain("the log ends at 5");
  // The log no longer has it, or a loss was accepted since.
  expect(await compareStored(connection, { ...place, position: 4, nonce: "other" })).toBeNull();
  expect(await compareStored(connection, { ...place, history: 1, position: 6 })).toBeNull();
});
