import { join } from "node:path";
import * as platformModule from "../../../../index.ts";
import { filesIn } from "../../../areas/tables/files/values.ts";
import { envFileOf, loadEnvFile } from "../../../config/loading/env-file.ts";
import { loadConfig } from "../../../config/loading/load.ts";
import { type Client, openClient } from "../../transfer/client.ts";
import type { Contents } from "../again/contents.ts";
import { type Account, compareAccounts, importAccounts, withClient } from "../load/accounts.ts";
import { type Comparison, createRecordsHash, hashOf, pathOf, recordsOf } from "../load/comparison.ts";
import { tellSlowHashes } from "../load/slow-hashes.ts";
import type { Remarks } from "../remarks.ts";
import { sourceTables } from "./contents.ts";
import type { MovedField } from "./fields.ts";
import { storedFiles } from "./files.ts";
import type { MovedTable, MovePlan } from "./plan.ts";
import { type Conversion, createConversion, filesOf, movedIds, restoreTimes, writeRecords } from "./records.ts";
import type { PbSource } from "./source.ts";

/** Results of loading: what was compared, and all that is here now. */
export interface Loaded {
  comparisons: Comparison[];
  contents: Contents;
}

/** Loads everything into the data directory beside a config that has been written, and compares it with the source. */
export async function loadAll(parts: {
  source: PbSource;
  plan: MovePlan;
  accounts: Iterable<Account>;
  directory: string;
  remarks: Remarks;
}): Promise<Loaded> {
  const { source, plan, directory, remarks } = parts;
  const config = join(directory, "platform.config.ts");
  const data = join(directory, "data");
  const file = join(data, "databases", "shared.db");
  loadEnvFile(envFileOf(config), process.env);
  const declared = (await loadConfig(config, platformModule)).config;
  const tables = declared.databases?.["shared"]?.tables ?? {};
  const open = (): Promise<Client> => openClient({ config, data });

  const accounts = await withClient(open, (client) => importAccounts(client, parts.accounts, remarks));
  await tellSlowHashes(accounts, remarks);
  const taken = new Set(accounts.map(({ id }) => id));
  const conversion = createConversion(source, movedIds(source, plan, taken, remarks));
  writeRecords(file, tables, { plan, conversion });
  conversion.tellDangling(remarks);
  const comparisons = [compareAccounts(join(data, "system.db"), accounts)];
  if (await withClient(open, (client) => sendFiles(client, { source, plan, conversion, remarks }))) {
    restoreTimes(file, { plan, conversion, source });
  }
  comparisons.push(...(await withClient(open, (client) => compareTables(client, { source, plan, conversion }))));
  return { comparisons, contents: { accounts, tables: sourceTables(source, plan, conversion) } };
}

interface Moved {
  source: PbSource;
  plan: MovePlan;
  conversion: Conversion;
}

/** The tables of a collection with their fields of files. */
const fileTables = ({ name, fields, hidden }: MovedTable) =>
  [{ name, fields }, ...(hidden === null ? [] : [hidden])]
    .map((table) => ({ ...table, fields: table.fields.filter(({ kind }) => kind === "file" || kind === "files") }))
    .filter((table) => table.fields.length > 0);

/** Gives records their files, each record by one form. Returns whether there were any. */
async function sendFiles(
  client: Client,
  { source, plan, conversion, remarks }: Moved & { remarks: Remarks },
): Promise<boolean> {
  let isAny = false;
  for (const table of plan.tables) {
    for (const { name, fields } of fileTables(table)) {
      for (const row of conversion.rows(table)) {
        const form = new FormData();
        form.append("record", "{}");
        let count = 0;
        for (const field of fields) {
          for (const file of filesOf(source, table, field, row)) {
            form.append(field.name, Bun.file(file.path, { type: file.type }), file.name);
            count += 1;
          }
        }
        tellMissing({ source, table, fields, row, remarks });
        if (count === 0) continue;
        isAny = true;
        const reply = await client.patchForm(`${pathOf(name)}/${encodeURIComponent(String(row["id"]))}`, form);
        if (reply.status !== 200)
          remarks.lost(name, `the files of ${String(row["id"])}: ${String(reply.body["message"])}`);
      }
    }
  }
  return isAny;
}

function tellMissing(parts: {
  source: PbSource;
  table: MovedTable;
  fields: readonly MovedField[];
  row: Record<string, unknown>;
  remarks: Remarks;
}): void {
  const { source, table, fields, row, remarks } = parts;
  for (const { source: field } of fields) {
    const { missing } = storedFiles(source, table.collection, String(row["id"]), row[field.name]);
    for (const name of missing) {
      remarks.lost(
        `${table.collection.name}.${field.name}`,
        `the file ${name} of ${String(row["id"])}, which is not in storage`,
      );
    }
  }
}

/** Compares every record and file, as the API answers them, with the source. */
async function compareTables(client: Client, { source, plan, conversion }: Moved): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  const files = { there: createRecordsHash(), here: createRecordsHash() };
  for (const table of plan.tables) {
    const parts = [
      { name: table.name, fields: table.fields, recordOf: conversion.record },
      ...(table.hidden === null ? [] : [{ ...table.hidden, recordOf: conversion.hiddenRecord }]),
    ];
    for (const { name, fields, recordOf } of parts) {
      const withFiles = fields.filter(({ kind }) => kind === "file" || kind === "files");
      const there = createRecordsHash();
      const members = new Set<string>();
      for (const row of conversion.rows(table)) {
        const record = recordOf(table, row);
        if (record === null) continue;
        for (const field of withFiles) {
          const stored = filesOf(source, table, field, row);
          record[field.name] = stored.map(({ name: file }) => file);
          for (const { name: file, path } of stored)
            files.there.add({ file, hash: await hashOf(Bun.file(path).stream()) });
        }
        for (const member of Object.keys(record)) members.add(member);
        there.add(record);
      }
      const here = createRecordsHash();
      const isMoved = (id: string): boolean => table.kind !== "users" || conversion.isMoved(table, id);
      for await (const record of recordsOf(client, name)) {
        if (!isMoved(String(record["id"]))) continue;
        const seen = Object.fromEntries(Object.entries(record).filter(([member]) => members.has(member)));
        for (const field of withFiles) {
          const stored = filesIn(record[field.name]);
          seen[field.name] = stored.map(({ name: file }) => file);
          for (const { name: file, url } of stored) {
            files.here.add({ file, hash: await hashOf((await client.bytes(url)).body) });
          }
        }
        here.add(seen);
      }
      comparisons.push({ name, kind: "records", there: there.result(), here: here.result() });
    }
  }
  const [there, here] = [files.there.result(), files.here.result()];
  return there.count + here.count === 0 ? comparisons : [...comparisons, { name: "files", kind: "files", there, here }];
}
