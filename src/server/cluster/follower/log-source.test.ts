/** Files that are fetched anew from the log of a real PostgreSQL. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startMember } from "../../../../tests/support/cluster/members.ts";
import { openOwnerFiles } from "../../../../tests/support/cluster/owner-files.ts";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { temporaryDirectory } from "../../../../tests/support/platform.ts";
import { until } from "../../../../tests/support/until.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import { makeSchema } from "../postgres/schema.ts";
import { FollowerFiles } from "./follower-files.ts";
import { createLogSource, OtherLog } from "./log-source.ts";

const PATHS = ["system.db", "databases/notes.db"];
const NONCE_BYTES = 18;

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await TestPostgres.start();
  const connection = await postgres.connect();
  await makeSchema(connection, 1_000_000);
  connection.close();
});
afterAll(() => postgres.stop());

test("[CLU71] a file that is not as the log has it is fetched from the log, and only from the log of this node's place", async () => {
  const owning = startMember({ postgres: postgres.url, node: "owner", speed: 4 });
  await until("it is the owner", () => owning.member.isOwner);
  const owned = temporaryDirectory();
  const owner = openOwnerFiles(owned, (row) => void owning.member.commit(row));
  const opened = PATHS.map((path) => owner.open(path));
  for (let round = 0; round < 150; round++)
    for (const file of opened)
      await file.write(
        (tx) => void tx.query(`INSERT INTO "notes" ("text", "copies") VALUES (?, ?)`).run(`text ${round}`, round),
      );
  await owner.stop();
  await until("it is in the log", () => owning.member.mayAnswer(owning.member.position));

  const source = createLogSource({
    url: postgres.url,
    applicationName: "fetching",
    nonce: () => systemIds.secret(NONCE_BYTES),
    copies: { list: async () => null, fetch: async () => null },
  });
  const directory = temporaryDirectory();
  const failures: string[] = [];
  const follow = () =>
    new FollowerFiles(
      {
        directory,
        clock: systemClock,
        ids: systemIds,
        onVisible: () => {},
        onClosing: () => {},
        onFailure: (path) => void failures.push(path),
        source,
      },
      { wasOwner: true },
    );
  const first = follow();
  const following = startMember({ postgres: postgres.url, node: "follower", speed: 4 });
  const last = owning.member.position;
  await until("it has read everything", () => following.member.position === last);
  first.apply(following.applied);
  await first.settled();
  const { place } = first;
  await first.close();
  writeFileSync(join(directory, "system.db"), "nothing");
  const again = follow();
  expect(again.isSettled).toBe(false);
  again.reachedEnd();
  await again.settled();
  expect([again.place, failures]).toEqual([place, ["system.db"]]);
  await again.close();
  for (const path of PATHS) {
    const sqlite = new Database(join(directory, path), { readwrite: true });
    sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
    sqlite.close();
    expect(readFileSync(join(directory, path)).equals(readFileSync(join(owned, path)))).toBe(true);
  }
  const other = source.entries("any", { after: null, upTo: { ...place, nonce: "another" } })[Symbol.asyncIterator]();
  await expect(other.next()).rejects.toThrow(OtherLog);
  owning.stop();
  following.stop();
}, 60_000);
