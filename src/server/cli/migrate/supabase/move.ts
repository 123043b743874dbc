import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as platformModule from "../../../../index.ts";
import { envFileOf, loadEnvFile } from "../../../config/loading/env-file.ts";
import { loadConfig } from "../../../config/loading/load.ts";
import { CommandError } from "../../errors.ts";
import { type Client, openClient } from "../../transfer/client.ts";
import { moveAgain, saveMoved } from "../again/again.ts";
import { type BucketFile, placeOf } from "../again/bucket-files.ts";
import { againReport } from "../again/report.ts";
import { compareAccounts, importAccounts, withClient } from "../load/accounts.ts";
import { type Comparison, hashOf, recordsOf } from "../load/comparison.ts";
import { tellSlowHashes } from "../load/slow-hashes.ts";
import { inserter, required, writeToFile } from "../load/write.ts";
import { createRemarks, type Remarks } from "../remarks.ts";
import { compared, isSame, section } from "../report.ts";
import { accountsOf, type MovedAccounts } from "./accounts.ts";
import { bucketsOf, filesOf, type MovedBucket } from "./buckets.ts";
import { configText } from "./config.ts";
import { sourceTables } from "./contents.ts";
import { type MovePlan, planOf } from "./plan.ts";
import { Conversion, createSetHash } from "./records.ts";
import type { PgSource } from "./source.ts";
import { Translation } from "./translation.ts";

const SECRET_MODE = 0o600;
/** Kinds of things whose SQL the report shows. */
const SHOWN = new Set(["view", "materialized view", "function", "trigger", "index"]);

/** A source of tables, and what there is to say about it. */
export interface Kind {
  /** In titles: "Supabase". */
  name: string;
  /** In the head of the config. */
  from: string;
  hasAccounts: boolean;
  /** Whether it has rules, with rights of roles. */
  hasRules: boolean;
  /** Accounts that are not in tables. */
  accounts?: MovedAccounts;
}

export const SUPABASE: Kind = { name: "Supabase", from: "a Supabase dump", hasAccounts: true, hasRules: true };

/** Plans the move of a source. Nothing is written. */
export function planMove(source: PgSource, now: number, kind: Kind, remarks: Remarks = createRemarks()) {
  const moved = kind.accounts ?? accountsOf(source, now, remarks);
  const movable = new Set(moved.accounts.map(({ id }) => id));
  const plan = planOf(source, movable, remarks);
  const translation = new Translation(plan, remarks);
  const buckets = bucketsOf(source, remarks);
  const { providers, hasUnconfirmed } = moved;
  const { from, hasAccounts } = kind;
  const text = configText({ plan, translation, buckets, providers, hasUnconfirmed, from, hasAccounts });
  tellOthers(source, remarks);
  if (providers.length > 0) {
    remarks.look("auth.oauth", `the secrets of ${providers.join(", ")} are not in a dump: fill them in in .env`);
  }
  if (kind.hasRules && !source.tables.some(({ schema, grants }) => schema === "public" && grants.length > 0)) {
    remarks.look("public", "the dump has no rights of roles, so nobody has one here: make it without --no-privileges");
  }
  const report = (comparisons: readonly Comparison[] | null): string => reportText(plan, comparisons, remarks, kind);
  return { text, plan, buckets, moved, remarks, report };
}

function tellOthers({ others }: PgSource, remarks: Remarks): void {
  for (const { kind, place, sql } of others) {
    const isOwn = place.startsWith("public.") || kind === "trigger" || kind === "index";
    if (!isOwn || !SHOWN.has(kind)) continue;
    remarks.lost(place, `a ${kind}, to be written again: \`${sql.replace(/\s+/g, " ").replaceAll("`", "'").trim()}\``);
  }
}

function reportText(
  { tables }: MovePlan,
  comparisons: readonly Comparison[] | null,
  remarks: Remarks,
  { name: from, hasAccounts, hasRules }: Kind,
): string {
  const rows = tables.map(({ name, rows: count }) => `| ${name} | ${count} |`);
  const planned = ["## What there is", "", "| table | records |", "|---|---|", ...rows].join("\n");
  const sections = [
    `# Moved from ${from}`,
    comparisons === null ? planned : compared(comparisons),
    ...section("Not moved", remarks.notMoved),
    ...section("What to look at", [
      ...remarks.toLookAt,
      ...(hasAccounts ? ALWAYS : []),
      ...(hasRules ? [] : WITHOUT_RULES),
    ]),
  ];
  return `${sections.join("\n\n")}\n`;
}

/** Remarks of every move. */
const ALWAYS = [
  {
    place: "auth",
    text: "sign-up is off, as a dump does not say whether it was on: leave `signup` out to let everybody sign up",
  },
  { place: "auth", text: "users may delete their own account, by `DELETE /api/auth/me`" },
  { place: "references", text: "may name a record that the caller cannot read, as there (`mayBeHidden`)" },
];

const WITHOUT_RULES = [
  {
    place: "rules",
    text: "there are none, so service keys alone read and write: say in each table's `access` who may",
  },
];

export interface Moving {
  directory: string;
  /** The folder with the files of buckets; null: none was named. */
  folder: string | null;
  now: number;
  kind: Kind;
  /** Remarks of reading the source. */
  remarks?: Remarks;
}

/** Moves a source into a new directory. Errors: CommandError for one that is filled. Returns whether all is as it was. */
export async function move(
  source: PgSource,
  { directory, folder, now, kind, remarks: given }: Moving,
): Promise<boolean> {
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    throw new CommandError(`${directory} is not empty: name a new folder`);
  }
  const { text, plan, buckets, moved, remarks, report } = planMove(source, now, kind, given);
  mkdirSync(directory, { recursive: true });
  const config = join(directory, "platform.config.ts");
  writeFileSync(config, text, { flag: "wx" });
  if (moved.providers.length > 0) {
    const names = moved.providers.flatMap((name) => [
      `${name.toUpperCase()}_CLIENT_ID`,
      `${name.toUpperCase()}_CLIENT_SECRET`,
    ]);
    const lines = names.map((name) => `${name}="to be filled in"\n`).join("");
    writeFileSync(envFileOf(config), lines, { flag: "wx", mode: SECRET_MODE });
  }
  loadEnvFile(envFileOf(config), process.env);
  const data = join(directory, "data");
  const open = (): Promise<Client> => openClient({ config, data });
  const tables = (await loadConfig(config, platformModule)).config.databases?.["shared"]?.tables ?? {};
  const accounts = await withClient(open, (client) => importAccounts(client, moved.accounts, remarks));
  await tellSlowHashes(accounts, remarks);
  const taken = new Set(accounts.map(({ id }) => id));
  const conversion = new Conversion(source, (table, id) => table !== plan.users || taken.has(id));
  writeToFile(join(data, "databases", "shared.db"), tables, (sqlite, models) => {
    for (const table of plan.tables) {
      const write = inserter(sqlite, required(models, table.name));
      const writeHidden = table.hidden.length === 0 ? null : inserter(sqlite, required(models, `${table.name}_hidden`));
      sqlite.transaction(() => {
        for (const { record, hidden } of conversion.records(table)) {
          write(record);
          writeHidden?.(hidden);
        }
      })();
    }
  });
  conversion.tellDangling(remarks);
  const comparisons = [compareAccounts(join(data, "system.db"), accounts)];
  comparisons.push(...(await withClient(open, (client) => compareTables(client, plan, conversion))));
  const files = await withClient(open, (client) => sendFiles(client, { source, buckets, folder, remarks }));
  if (files !== null) {
    setOwners(join(data, "system.db"), { source, buckets, folder }, () => true);
    comparisons.push(files);
  }
  const contents = { accounts, tables: sourceTables(plan, conversion) };
  await saveMoved(directory, text, contents, bucketFiles(source, buckets, folder));
  writeFileSync(join(directory, "report.md"), report(comparisons));
  return isSame(comparisons);
}

/** Takes over what has changed in a source since it was moved. Errors: those of `moveAgain`. Returns whether the rest is as it was. */
export async function moveOnceMore(
  source: PgSource,
  { directory, folder, now, kind, remarks: given }: Moving,
): Promise<boolean> {
  const { text, plan, buckets, moved, remarks } = planMove(source, now, kind, given);
  const conversions: Conversion[] = [];
  const names = buckets.map(({ name }) => name);
  const again = await moveAgain({
    directory,
    config: text,
    accounts: moved.accounts,
    files: folder === null ? null : { buckets: names, all: () => bucketFiles(source, buckets, folder) },
    now,
    remarks,
    tablesWith: ({ account, record }) => {
      const conversion = new Conversion(source, (table, id) =>
        table === plan.users ? account(id) : record(table, id),
      );
      conversions.push(conversion);
      return sourceTables(plan, conversion);
    },
  });
  conversions.at(-1)?.tellDangling(remarks);
  setOwners(join(directory, "data", "system.db"), { source, buckets, folder }, (file) =>
    again.files.has(placeOf(file)),
  );
  const report = againReport({ title: `# Moved from ${kind.name} again`, again, config: text, remarks });
  writeFileSync(join(directory, "report.md"), report);
  return isSame(again.comparisons);
}

/** Yields the files of the storage whose bytes are in the folder. */
function* bucketFiles(source: PgSource, buckets: readonly MovedBucket[], folder: string | null): Generator<BucketFile> {
  for (const { bucket, key, path, type } of filesOf(source, buckets, folder)) {
    if (path !== null) yield { bucket, key, path, type };
  }
}

async function compareTables(client: Client, plan: MovePlan, conversion: Conversion): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const table of plan.tables) {
    const names = [table.name, ...(table.hidden.length === 0 ? [] : [`${table.name}_hidden`])];
    for (const [index, name] of names.entries()) {
      const [there, here] = [createSetHash(), createSetHash()];
      for (const { record, hidden } of conversion.records(table)) there.add(index === 0 ? record : hidden);
      for await (const record of recordsOf(client, name)) here.add(record);
      comparisons.push({ name, kind: "records", there: there.result(), here: here.result() });
    }
  }
  return comparisons;
}

interface Filing {
  source: PgSource;
  buckets: readonly MovedBucket[];
  folder: string | null;
}

/** Uploads the files of a folder, and compares them. Returns null where there are none. */
async function sendFiles(
  client: Client,
  { source, buckets, folder, remarks }: Filing & { remarks: Remarks },
): Promise<Comparison | null> {
  const [there, here] = [createSetHash(), createSetHash()];
  let isAny = false;
  for (const { bucket, key, path, type } of filesOf(source, buckets, folder)) {
    isAny = true;
    if (path === null) {
      remarks.lost(
        `bucket ${bucket}`,
        `the file ${key}, which is not in ${folder ?? "a folder: name one with --files"}`,
      );
      continue;
    }
    const form = new FormData();
    form.append("file", Bun.file(path, { type }), key.split("/").at(-1));
    form.append("key", key);
    const reply = await client.postForm(`/api/storage/${bucket}/upload`, form);
    if (reply.status !== 201) {
      remarks.lost(`bucket ${bucket}`, `the file ${key}: ${String(reply.body["message"])}`);
      continue;
    }
    there.add({ bucket, key, hash: await hashOf(Bun.file(path).stream()) });
    const stored = await client.bytes(`/api/storage/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`);
    here.add({ bucket, key, hash: await hashOf(stored.body) });
  }
  return isAny ? { name: "files", kind: "files", there: there.result(), here: here.result() } : null;
}

/** Gives files the users who have uploaded them, and their times. */
function setOwners(
  file: string,
  { source, buckets, folder }: Filing,
  isMeant: (one: { bucket: string; key: string }) => boolean,
): void {
  const sqlite = new Database(file, { readwrite: true });
  try {
    const known = sqlite.prepare<{ id: string }, [string]>("SELECT id FROM users WHERE id = ?");
    const update = sqlite.prepare<unknown, [string | null, number | null, string, string]>(
      "UPDATE storage_objects SET uploadedBy = ?, uploaded = coalesce(?, uploaded) WHERE bucket = ? AND key = ?",
    );
    sqlite.transaction(() => {
      for (const { bucket, key, owner, createdAt } of filesOf(source, buckets, folder)) {
        if (!isMeant({ bucket, key })) continue;
        const at =
          createdAt === null ? Number.NaN : Date.parse(createdAt.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
        update.run(owner === null ? null : (known.get(owner)?.id ?? null), Number.isNaN(at) ? null : at, bucket, key);
      }
    })();
  } finally {
    sqlite.close();
  }
}
