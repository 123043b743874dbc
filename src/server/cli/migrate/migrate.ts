import { statSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../../../kernel/clock.ts";
import { CommandError, UsageError } from "../errors.ts";
import { option } from "../options.ts";
import { printAnswer, printNote } from "../output.ts";
import type { FirebasePlaces } from "./firebase/source.ts";
import { unpackBackup } from "./pocketbase/archive.ts";
import { move, moveOnceMore, planMove } from "./pocketbase/move.ts";
import { openPbData } from "./pocketbase/source.ts";
import { createRemarks, type Remarks } from "./remarks.ts";
import { isSqliteFile, openSqlite } from "./sqlite/source.ts";
import type { Kind } from "./supabase/move.ts";
import { isConnection, isCustomDump, withSource } from "./supabase/open.ts";
import type { PgSource } from "./supabase/source.ts";

const KINDS: readonly string[] = ["pocketbase", "supabase", "sqlite", "firebase"];

export const migrateCommand = new Command("migrate")
  .description(
    "Makes a config and a data directory from what another backend has: PocketBase, Supabase, Firebase, SQLite",
  )
  .argument(
    "<SOURCE>",
    "A pb_data folder or backup zip of PocketBase; a pg_dump or postgres://… of Supabase; an auth:export of Firebase; a file of SQLite",
  )
  .addOption(option("--into <DIR>", "The new folder, for platform.config.ts, data and report.md"))
  .option("--plan", "Print the config and the report, and write nothing")
  .option("--again", "Take over into DIR what has changed there since; whatever was changed here stays")
  .addOption(option("--from <KIND>", `What SOURCE is, where it does not tell: ${KINDS.join(", ")}`))
  .addOption(option("--files <FOLDER>", "The files of Supabase's or Firebase's storage, as BUCKET/NAME"))
  .addOption(option("--firestore <FILE>", "The documents of Firestore, one { path, data } a line"))
  .addOption(option("--hash-parameters <FILE>", "The parameters of Firebase's scrypt, as JSON"))
  .action(async (place, { into, plan, again, from, files, firestore, hashParameters: parameters }) => {
    if (plan !== true && into === undefined)
      throw new UsageError("--into names the folder to make, or --plan prints it");
    if (again === true && (plan === true || into === undefined))
      throw new UsageError("--again takes over into the folder of --into, and has no --plan");
    if (from !== undefined && !KINDS.includes(from))
      throw new UsageError(`--from must be ${KINDS.join(", ")}, got "${from}"`);
    if (from === "firebase") {
      const places = {
        accounts: place,
        documents: firestore ?? null,
        files: files ?? null,
        parameters: parameters ?? null,
      };
      return migrateFirebase(places, { into: plan === true ? undefined : into, isAgain: again === true });
    }
    if (firestore !== undefined || parameters !== undefined)
      throw new UsageError("--firestore and --hash-parameters are for --from firebase");
    if (from === "supabase" || (from === undefined && isSupabase(place)))
      return migrateSupabase(place, {
        into: plan === true ? undefined : into,
        files: files ?? null,
        isAgain: again === true,
      });
    if (from === "sqlite" || (from === undefined && isDatabase(place))) {
      if (files !== undefined) throw new UsageError("--files is for Supabase: a database of SQLite has no buckets");
      return migrateSqlite(place, { into: plan === true ? undefined : into, isAgain: again === true });
    }
    if (files !== undefined) throw new UsageError("--files is for Supabase: the files of PocketBase are in its folder");
    const stats = statSync(place, { throwIfNoEntry: false });
    if (stats === undefined) throw new CommandError(`There is no file or folder ${place}`);
    const unpacked = stats.isDirectory() ? null : await unpackBackup(place);
    try {
      await migrate(unpacked?.folder ?? place, { into, isPlan: plan === true, isAgain: again === true });
    } finally {
      unpacked?.dispose();
    }
  });

/** Whether a source is a dump or an address of PostgreSQL. */
function isSupabase(place: string): boolean {
  if (isConnection(place)) return true;
  const stats = statSync(place, { throwIfNoEntry: false });
  return stats?.isFile() === true && (place.endsWith(".sql") || isCustomDump(place));
}

async function migrateSupabase(
  place: string,
  { into, files, isAgain }: { into: string | undefined; files: string | null; isAgain: boolean },
): Promise<void> {
  if (!isConnection(place) && statSync(place, { throwIfNoEntry: false })?.isFile() !== true)
    throw new CommandError(`There is no file ${place}`);
  // Loaded here: other sources need none of it.
  const supabase = await import("./supabase/move.ts");
  const now = systemClock.now();
  await withSource(place, async (source) => {
    if (into === undefined) {
      const { text, report } = supabase.planMove(source, now, supabase.SUPABASE);
      return printAnswer(`${text}\n${report(null).trimEnd()}`);
    }
    const move = isAgain ? supabase.moveOnceMore : supabase.move;
    return ended(into, await move(source, { directory: into, folder: files, now, kind: supabase.SUPABASE }));
  });
}

const isDatabase = (place: string): boolean =>
  statSync(place, { throwIfNoEntry: false })?.isFile() === true && isSqliteFile(place);

async function migrateSqlite(
  place: string,
  { into, isAgain }: { into: string | undefined; isAgain: boolean },
): Promise<void> {
  if (!isDatabase(place)) throw new CommandError(`${place} is no database of SQLite`);
  const remarks = createRemarks();
  const source = openSqlite(place, remarks);
  const kind = { name: "SQLite", from: "a database of SQLite", hasAccounts: false, hasRules: false };
  try {
    await migrateTables(source, { into, isAgain, folder: null, kind, remarks });
  } finally {
    source.close();
  }
}

async function migrateFirebase(
  places: FirebasePlaces,
  { into, isAgain }: { into: string | undefined; isAgain: boolean },
): Promise<void> {
  const remarks = createRemarks();
  const { openFirebase } = await import("./firebase/source.ts");
  const { source, accounts } = openFirebase(places, remarks);
  const kind = { name: "Firebase", from: "an export of Firebase", hasAccounts: true, hasRules: false, accounts };
  await migrateTables(source, { into, isAgain, folder: places.files, kind, remarks });
}

/** Moves tables, which are those of PostgreSQL or in their form. */
async function migrateTables(
  source: PgSource,
  {
    into,
    isAgain,
    folder,
    kind,
    remarks,
  }: { into: string | undefined; isAgain: boolean; folder: string | null; kind: Kind; remarks: Remarks },
): Promise<void> {
  // Loaded here: PocketBase needs none of it.
  const tables = await import("./supabase/move.ts");
  const now = systemClock.now();
  if (into === undefined) {
    const { text, report } = tables.planMove(source, now, kind, remarks);
    return printAnswer(`${text}\n${report(null).trimEnd()}`);
  }
  const move = isAgain ? tables.moveOnceMore : tables.move;
  await ended(into, await move(source, { directory: into, folder, now, kind, remarks }));
}

/** Says where to go on. Errors: CommandError where something differs. */
async function ended(into: string, isSame: boolean): Promise<void> {
  await printNote(`wrote ${into}: read report.md, then platform check --config ${into}/platform.config.ts`);
  if (!isSame) throw new CommandError("Not all is as it was: report.md names the counts and hashes that differ");
}

async function migrate(
  folder: string,
  { into, isPlan, isAgain }: { into: string | undefined; isPlan: boolean; isAgain: boolean },
): Promise<void> {
  const source = openPbData(folder);
  try {
    if (isPlan || into === undefined) {
      const { text, report } = planMove(source);
      await printAnswer(`${text}\n${report().trimEnd()}`);
      return;
    }
    await ended(into, await (isAgain ? moveOnceMore(source, into, systemClock.now()) : move(source, into)));
  } finally {
    source.close();
  }
}
