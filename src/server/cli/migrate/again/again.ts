import { existsSync } from "node:fs";
import { join } from "node:path";
import * as platformModule from "../../../../index.ts";
import { envFileOf, loadEnvFile } from "../../../config/loading/env-file.ts";
import { loadConfig } from "../../../config/loading/load.ts";
import type { TableConfig } from "../../../config/types.ts";
import { DirectoryInUse, lockDirectory } from "../../../db/index.ts";
import { CommandError } from "../../errors.ts";
import { type Client, openClient } from "../../transfer/client.ts";
import { type Account, importAccounts, withClient } from "../load/accounts.ts";
import { type Comparison, createRecordsHash, pathOf } from "../load/comparison.ts";
import type { Remarks } from "../remarks.ts";
import { ACCOUNT_PARTS, accountsHere, accountsThere, updateAccounts } from "./accounts.ts";
import { BUCKETS, type BucketFile, filesHere, filesThere, takeFiles } from "./bucket-files.ts";
import { type Contents, type Prints, printsHere, printsThere, type SourceTable } from "./contents.ts";
import { type Decision, decide, type Print } from "./decide.ts";
import {
  type AllDecisions,
  deleteAll,
  isTaken,
  type Refused,
  referredTo,
  restoreTaken,
  sendTaken,
  writeTaken,
} from "./records.ts";
import { type MovedState, printOf, readState, writeState } from "./state.ts";

/** A record or account that stays as it is here. */
export interface Left {
  table: string;
  id: string;
  because: "made" | "changed" | "deleted";
  isNewThere: boolean;
}

/** Results of a second move. */
export interface Again {
  comparisons: readonly Comparison[];
  left: readonly Left[];
  counts: ReadonlyMap<string, { inserted: number; updated: number; deleted: number }>;
  /** Files of buckets that were taken over, as `BUCKET/KEY`. */
  files: ReadonlySet<string>;
  /** The config that the move before wrote. */
  formerConfig: string;
}

export interface AgainParts {
  directory: string;
  /** The config that a first move would write now. */
  config: string;
  accounts: readonly Account[];
  /** Returns the tables where only some accounts and records are here: references to others become null. */
  tablesWith: (isHere: {
    account: (id: string) => boolean;
    record: (table: string, id: string) => boolean;
  }) => readonly SourceTable[];
  /** Files of buckets; null: the source has none, or no folder with them was named. */
  files: { buckets: readonly string[]; all: () => Iterable<BucketFile> } | null;
  now: number;
  remarks: Remarks;
}

/** Saves what a first move has brought. */
export async function saveMoved(
  directory: string,
  config: string,
  contents: Contents,
  files: Iterable<BucketFile> = [],
): Promise<void> {
  const { facts, passwords } = accountsThere(contents.accounts);
  const tables = new Map<string, Prints>([
    [ACCOUNT_PARTS.facts, facts],
    [ACCOUNT_PARTS.passwords, passwords],
  ]);
  for (const table of contents.tables) tables.set(table.name, await printsThere(table));
  tables.set(BUCKETS, await filesThere(files));
  writeState(join(directory, "data"), { config, tables });
}

/**
 * Takes over what has changed in a source since the move before. Whatever was made, changed or deleted here stays. Errors:
 * CommandError for a folder that no move has made, and for a server that runs.
 */
export async function moveAgain(parts: AgainParts): Promise<Again> {
  const { directory, accounts, now, remarks } = parts;
  const config = join(directory, "platform.config.ts");
  const data = join(directory, "data");
  if (!existsSync(config))
    throw new CommandError(`${config} is not there: --again is for a folder that a move has made`);
  const state = readState(data);
  loadEnvFile(envFileOf(config), process.env);
  const tables = (await loadConfig(config, platformModule)).config.databases?.["shared"]?.tables ?? {};
  const [file, system] = [join(data, "databases", "shared.db"), join(data, "system.db")];
  const open = (): Promise<Client> => openClient({ config, data });

  await startOnce(open);
  const there = accountsThere(accounts);
  const stored = accountsHere(system);
  const facts = decideAll(state, ACCOUNT_PARTS.facts, there.facts, stored.facts);
  const passwords = passwordsOf(facts, decideAll(state, ACCOUNT_PARTS.passwords, there.passwords, stored.passwords));
  const added = new Set([...facts].flatMap(([id, { kind }]) => (kind === "insert" ? [id] : [])));
  await withClient(open, (client) =>
    importAccounts(
      client,
      accounts.filter(({ id }) => added.has(id)),
      remarks,
    ),
  );
  const changed = (of: ReadonlyMap<string, Decision>) =>
    new Set([...of].flatMap(([id, { kind }]) => (kind === "update" ? [id] : [])));
  const unlocked = lockDirectory(data);
  const stale = updateAccounts(system, accounts, {
    facts: changed(facts),
    passwords: changed(passwords),
    now,
    remarks,
  });
  unlocked.release();

  const known = new Set(accountsHere(system).facts.keys());
  // Those that the import has refused are reported.
  for (const id of added) if (!known.has(id)) stale.add(id);
  const records = await decideRecords({ ...parts, open, tables, state, known, added });
  const { contents, prints, decisions } = records;
  const refused: Refused = new Map();
  const taking = { open, data, file, tables, contents, decisions, refused, remarks, prints, here: records.here };
  await takeRecords(taking);
  for (const id of await deleteGone({ ...taking, facts })) stale.add(id);

  const files = await takeBuckets(parts, open, state);
  const after = accountsHere(system);
  const isTold = (of: ReadonlyMap<string, Decision>) => (id: string) => isSettled(of.get(id)) && !stale.has(id);
  const comparisons = [
    comparison("accounts", "accounts", there.facts, after.facts, isTold(facts)),
    comparison("passwords", "accounts", there.passwords, after.passwords, isTold(passwords)),
    ...(await compareAll(open, contents, { prints, decisions, refused })),
    ...files.comparisons,
  ];
  const next = new Map<string, Prints>([
    [ACCOUNT_PARTS.facts, movedNow(there.facts, state.tables.get(ACCOUNT_PARTS.facts), facts, stale)],
    [ACCOUNT_PARTS.passwords, movedNow(there.passwords, state.tables.get(ACCOUNT_PARTS.passwords), facts, stale)],
  ]);
  for (const [name, found] of prints) {
    const decided = decisions.get(name) ?? new Map();
    next.set(name, movedNow(found, state.tables.get(name), decided, refused.get(name) ?? new Set()));
  }
  next.set(BUCKETS, files.moved);
  writeState(data, { config: parts.config, tables: next });
  const all = new Map<string, ReadonlyMap<string, Decision>>([
    ["accounts", facts],
    ["passwords", passwords],
    ...decisions,
    ["files of buckets", files.decisions],
  ]);
  return {
    comparisons,
    left: leftIn(all),
    counts: countsOf(all, refused),
    files: files.taken,
    formerConfig: state.config,
  };
}

/** Starts the server once, which brings its files up to date. Errors: CommandError where one runs. */
async function startOnce(open: () => Promise<Client>): Promise<void> {
  try {
    await withClient(open, async () => {});
  } catch (cause) {
    if (!(cause instanceof CommandError) || !(cause.cause instanceof DirectoryInUse)) throw cause;
    throw new CommandError(`${cause.cause.message}: stop the server before --again`, { cause });
  }
}

interface Deciding extends AgainParts {
  open: () => Promise<Client>;
  tables: Readonly<Record<string, TableConfig>>;
  state: MovedState;
  /** Accounts that are here, and those of them that are new. */
  known: ReadonlySet<string>;
  added: ReadonlySet<string>;
}

/** Reads all records on both sides, and decides on each. */
async function decideRecords({ open, tables, state, known, added, tablesWith, remarks }: Deciding) {
  const account = (id: string): boolean => known.has(id);
  const isHere = await presence(open, tablesWith({ account, record: () => true }), tables, state);
  const declared = tablesWith({ account, record: isHere.record }).filter(({ name }) =>
    isDeclared(tables, name, remarks),
  );
  const decisions = new Map<string, ReadonlyMap<string, Decision>>();
  const prints = new Map<string, Prints>();
  for (const table of declared) {
    const found = await printsThere(table);
    prints.set(table.name, found);
    const here = new Map(isHere.prints.get(table.name));
    // The record of a new account has nothing of there yet.
    if (table.isOfAccounts) for (const id of added) here.delete(id);
    const decided = decideAll(state, table.name, found, here);
    // Records of accounts go with these.
    const own = [...decided].filter(([id]) => !table.isOfAccounts || (found.has(id) && known.has(id)));
    decisions.set(table.name, new Map(own));
  }
  return { contents: { accounts: [], tables: declared } satisfies Contents, prints, decisions, here: isHere.prints };
}

/**
 * Returns the decisions on passwords of accounts that both sides have. An account that is gone there stays where its password is
 * another one here, which `facts` says then.
 */
function passwordsOf(facts: Map<string, Decision>, all: ReadonlyMap<string, Decision>): Map<string, Decision> {
  const kept = new Map<string, Decision>();
  for (const [id, decision] of all) {
    const fact = facts.get(id);
    if (fact?.kind === "delete" && decision.kind === "leave") facts.set(id, decision);
    const isOfBoth =
      fact?.kind === "nothing" || fact?.kind === "update" || (fact?.kind === "leave" && fact.because === "changed");
    if (isOfBoth && (decision.kind === "update" || decision.kind === "leave")) kept.set(id, decision);
  }
  return kept;
}

/** Returns what was moved by now. What could not be stays as it was, so that a later move tries again; so does what is gone there alone. */
function movedNow(
  there: Prints,
  before: Prints | undefined,
  decided: ReadonlyMap<string, Decision>,
  refused: ReadonlySet<string>,
): Prints {
  const now = new Map(there);
  const kept = [...decided].flatMap(([id, { kind }]) => (kind === "leave" && !there.has(id) ? [id] : []));
  for (const id of [...refused, ...kept]) {
    const former = before?.get(id);
    if (former === undefined) now.delete(id);
    else now.set(id, former);
  }
  return now;
}

function isDeclared(tables: Readonly<Record<string, TableConfig>>, name: string, remarks: Remarks): boolean {
  if (Object.hasOwn(tables, name)) return true;
  remarks.lost(name, "the table, which platform.config.ts does not have: add it, and run this again");
  return false;
}

function decideAll(state: MovedState, table: string, there: Prints, here: Prints): Map<string, Decision> {
  const moved = state.tables.get(table);
  const ids = new Set([...(moved?.keys() ?? []), ...there.keys(), ...here.keys()]);
  const at = (prints: ReadonlyMap<string, Print> | undefined, id: string): Print | null => prints?.get(id) ?? null;
  return new Map(
    [...ids].map((id) => [id, decide({ moved: at(moved, id), there: at(there, id), here: at(here, id) })]),
  );
}

/** Reads what is here, and says which records of the source may be referred to: not those that were deleted here. */
async function presence(
  open: () => Promise<Client>,
  tables: readonly SourceTable[],
  declared: Readonly<Record<string, TableConfig>>,
  state: MovedState,
) {
  const prints = new Map<string, Prints>();
  await withClient(open, async (client) => {
    for (const table of tables) {
      if (Object.hasOwn(declared, table.name)) prints.set(table.name, await printsHere(client, table));
    }
  });
  const record = (table: string, id: string): boolean => {
    const isGone = state.tables.get(table)?.has(id) === true && prints.get(table)?.has(id) !== true;
    return prints.has(table) && !isGone;
  };
  return { prints, record };
}

interface Taking {
  open: () => Promise<Client>;
  file: string;
  tables: Readonly<Record<string, TableConfig>>;
  contents: Contents;
  decisions: AllDecisions;
  refused: Refused;
  remarks: Remarks;
  prints: ReadonlyMap<string, Prints>;
  here: ReadonlyMap<string, Prints>;
}

async function takeRecords(parts: Taking & { data: string }): Promise<void> {
  const { open, data, file, tables, contents, decisions, refused, remarks, prints, here } = parts;
  const lock = lockDirectory(data);
  try {
    writeTaken(file, tables, { contents, decisions, refused, remarks });
  } finally {
    lock.release();
  }
  const changed: { table: SourceTable; ids: ReadonlySet<string> }[] = [];
  await withClient(open, async (client) => {
    for (const table of contents.tables) {
      const decided = decisions.get(table.name) ?? new Map();
      const taken = new Set([...decided].flatMap(([id, one]) => (isTaken(one) ? [id] : [])));
      for (const id of refused.get(table.name) ?? []) taken.delete(id);
      const isSame = (id: string): boolean =>
        hasFiles(table, prints.get(table.name)?.get(id), here.get(table.name)?.get(id));
      const sent = new Set([...taken].filter((id) => !isSame(id)));
      changed.push({ table, ids: await sendTaken(client, table, { taken: sent, refused, remarks }) });
    }
  });
  if (!changed.some(({ ids }) => ids.size > 0)) return;
  const again = lockDirectory(data);
  try {
    restoreTaken(file, tables, changed);
  } finally {
    again.release();
  }
}

const NO_FILES = printOf({ files: [] }).get("files") ?? "";

/** Whether a record has the files of there. */
const hasFiles = ({ files }: SourceTable, there: Print | undefined, here: Print | undefined): boolean =>
  files.every((field) => (there?.get(field) ?? NO_FILES) === (here?.get(field) ?? NO_FILES));

/** Deletes what is gone there: records, then accounts. Returns the ids of accounts that stay. */
async function deleteGone(parts: Taking & { facts: ReadonlyMap<string, Decision> }): Promise<string[]> {
  const { open, file, tables, contents, decisions, facts, refused, remarks, here } = parts;
  const gone = (of: ReadonlyMap<string, Decision> | undefined): Set<string> =>
    new Set([...(of ?? [])].flatMap(([id, { kind }]) => (kind === "delete" ? [id] : [])));
  const deleted = new Map(contents.tables.map(({ name }) => [name, gone(decisions.get(name))]));
  const accounts = gone(facts);
  for (const { name, isOfAccounts } of contents.tables) if (isOfAccounts) deleted.set(name, new Set(accounts));
  // One that stays keeps those to which it refers itself.
  for (let kept = referredTo(file, tables, deleted); kept.length > 0; kept = referredTo(file, tables, deleted)) {
    for (const { table, id, by } of kept) {
      deleted.get(table)?.delete(id);
      refused.set(table, (refused.get(table) ?? new Set()).add(id));
      remarks.look(table, `${id} is gone there and stays here, as ${by} refers to it`);
    }
  }
  // Hidden fields stay with a record that stays.
  for (const { name, partOf } of contents.tables) {
    if (partOf === null) continue;
    for (const id of [...(deleted.get(name) ?? [])]) {
      if (here.get(partOf)?.has(id) !== true || deleted.get(partOf)?.has(id) === true) continue;
      deleted.get(name)?.delete(id);
      refused.set(name, (refused.get(name) ?? new Set()).add(id));
    }
  }
  const ofAccounts = contents.tables.find(({ isOfAccounts }) => isOfAccounts)?.name;
  const paths = contents.tables
    .filter(({ isOfAccounts }) => !isOfAccounts)
    .flatMap(({ name }) =>
      [...(deleted.get(name) ?? [])].map((id) => ({ name, id, path: `${pathOf(name)}/${encodeURIComponent(id)}` })),
    );
  const ends = [...(ofAccounts === undefined ? accounts : (deleted.get(ofAccounts) ?? []))].map((id) => ({
    name: "accounts",
    id,
    path: `/api/auth/admin/users/${encodeURIComponent(id)}`,
  }));
  await withClient(open, async (client) => {
    await deleteAll(client, paths, { refused, remarks });
    await deleteAll(client, ends, { refused, remarks });
  });
  const stay = new Set([...(refused.get(ofAccounts ?? "") ?? []), ...(refused.get("accounts") ?? [])]);
  return [...accounts].filter((id) => stay.has(id));
}

/** Takes over the files of buckets. */
async function takeBuckets({ files, remarks }: AgainParts, open: () => Promise<Client>, state: MovedState) {
  const moved = state.tables.get(BUCKETS) ?? new Map();
  if (files === null) {
    if (moved.size > 0) remarks.look("files of buckets", "none was taken over: --files names the folder with them");
    return { decisions: new Map<string, Decision>(), comparisons: [], moved, taken: new Set<string>() };
  }
  const there = await filesThere(files.all());
  const here = await withClient(open, (client) => filesHere(client, files.buckets));
  const decisions = decideAll(state, BUCKETS, there, here);
  const refused = await withClient(open, (client) => takeFiles(client, files.all(), decisions, remarks));
  const after = await withClient(open, (client) => filesHere(client, files.buckets));
  const isCompared = (place: string): boolean => isSettled(decisions.get(place)) && !refused.has(place);
  const comparisons = there.size === 0 ? [] : [comparison("files", "files", there, after, isCompared)];
  const taken = new Set([...decisions].flatMap(([place, one]) => (isTaken(one) && !refused.has(place) ? [place] : [])));
  return { decisions, comparisons, moved: movedNow(there, moved, decisions, refused), taken };
}

/** Whether both sides are to be the same. */
const isSettled = (decision: Decision | undefined): boolean => decision?.kind !== "leave";

function comparison(
  name: string,
  kind: Comparison["kind"],
  there: Prints,
  here: Prints,
  isCompared: (id: string) => boolean,
): Comparison {
  const [one, other] = [createRecordsHash(), createRecordsHash()];
  for (const id of [...there.keys()].sort()) {
    if (!isCompared(id)) continue;
    const [left, right] = [there.get(id), here.get(id)];
    const fields = [...(left?.keys() ?? [])].filter((field) => right === undefined || right.has(field)).sort();
    const shown = (print: Print) => ({
      id,
      ...Object.fromEntries(fields.map((field) => [field, print.get(field) ?? ""])),
    });
    if (left !== undefined) one.add(shown(left));
    if (right !== undefined) other.add(shown(right));
  }
  return { name, kind, there: one.result(), here: other.result() };
}

async function compareAll(
  open: () => Promise<Client>,
  contents: Contents,
  { prints, decisions, refused }: { prints: ReadonlyMap<string, Prints>; decisions: AllDecisions; refused: Refused },
): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  await withClient(open, async (client) => {
    for (const table of contents.tables) {
      const { name } = table;
      const decided = decisions.get(name);
      const isCompared = (id: string): boolean =>
        decided?.has(id) === true && isSettled(decided.get(id)) && refused.get(name)?.has(id) !== true;
      const here = await printsHere(client, table);
      comparisons.push(comparison(name, "records", prints.get(name) ?? new Map(), here, isCompared));
    }
  });
  return comparisons;
}

const leftIn = (all: AllDecisions): Left[] =>
  [...all].flatMap(([table, decided]) =>
    [...decided].flatMap(([id, one]): Left[] =>
      one.kind === "leave" ? [{ table, id, because: one.because, isNewThere: one.isNewThere }] : [],
    ),
  );

function countsOf(all: AllDecisions, refused: Refused): Again["counts"] {
  return new Map(
    [...all].map(([table, decided]) => {
      const of = (kind: Decision["kind"]): number =>
        [...decided].filter(([id, one]) => one.kind === kind && refused.get(table)?.has(id) !== true).length;
      return [table, { inserted: of("insert"), updated: of("update"), deleted: of("delete") }];
    }),
  );
}
