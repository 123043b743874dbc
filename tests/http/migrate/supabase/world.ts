import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../support/index.ts";
import { type Postgres, startPostgres } from "../../../support/postgres.ts";

export const PASSWORD = "correct horse battery";
/** bcrypt of the password, as Supabase stores it. */
const HASH = "$2a$04$wOow2duDpX6O7kT08nfwCuCvEnMhziNhDJE4mbmGYp.rJF2LPfRoS";

const idOf = (digits: string): string => `00000000-0000-4000-8000-${digits.padStart(12, "0")}`;
export const IDS = { owner: idOf("a"), member: idOf("b"), stranger: idOf("c") } as const;
export const TASKS = {
  ofOwner: idOf("101"),
  ofMember: idOf("102"),
  locked: idOf("103"),
  ofNobody: idOf("104"),
} as const;

/** Starts PostgreSQL with a product as Supabase keeps it. */
export async function startSupabase(): Promise<Postgres> {
  const postgres = await startPostgres();
  const sql = readFileSync(join(import.meta.dir, "world.sql"), "utf8").replaceAll("$HASH", HASH);
  await postgres.open().unsafe(sql).simple();
  return postgres;
}

/** Writes the dump that pg_dump 15 has made of that product, and the files of its storage. */
export function dumpOf(name: "copy" | "inserts"): { dump: string; files: string } {
  const folder = temporaryDirectory();
  const dump = join(folder, "dump.sql");
  writeFileSync(dump, readFileSync(join(import.meta.dir, `${name}.dump.sql`)));
  const files = join(folder, "files");
  mkdirSync(join(files, "avatars", IDS.owner), { recursive: true });
  mkdirSync(join(files, "papers"));
  writeFileSync(join(files, "avatars", IDS.owner, "me.png"), "picture");
  writeFileSync(join(files, "papers", "plan.txt"), "plan");
  return { dump, files };
}
