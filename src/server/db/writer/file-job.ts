import fs from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { unreachable } from "../../../kernel/errors.ts";
import { AUDIT_TABLE } from "../audit/file-audit.ts";
import { INDEX_SLICE_MS, QUERY_LOCK_TIMEOUT_MS, REPLACE_STEP_PAGES, RESTART_WAIT_MS } from "../limits.ts";
import { OUTBOX_TABLE } from "../outbox/rows.ts";
import { type JobContext, serveJobs } from "../processes/program.ts";
import { sqliteFailure } from "../processes/query-error.ts";
import { type CommitMark, commitValues, type GateQuestion, UPDATE_COMMIT } from "./commit-gate.ts";
import type { FileRequest } from "./file-work.ts";
import { PENDING_TEXTS } from "./text-indexer.ts";

/** Starts the program of the process that runs checkpoints and indexes texts for the server's writer. [DB13] [DB148] */
export function start(): void {
  serveJobs<FileRequest>({ run: perform, failureOf: sqliteFailure });
}

/** Runs a request. Returns whether more texts wait to be indexed; false for every other request. */
async function perform(request: FileRequest, { ask }: JobContext): Promise<boolean> {
  // The answer of the file's gate.
  const nextMark = () => ask("commit" satisfies GateQuestion) as Promise<CommitMark>;
  switch (request.op) {
    case "ready":
      return false;
    case "checkpoint":
      return withFile(request.path, { next: request.next }, (file) => checkpoint(file, request));
    case "restart":
      return withFile(request.path, { next: false }, ({ connection }) => restartWal(connection, request, nextMark));
    case "replace":
      return replaceContent(request, nextMark);
    case "index":
      return withFile(request.path, { next: false }, ({ connection }) => indexTexts(connection, request, nextMark));
    default:
      return unreachable(request);
  }
}

interface OpenFile {
  path: string;
  connection: DatabaseSync;
  /** Descriptor of the database file, for syncs. Closed after the connection, because closing it drops SQLite's POSIX locks. */
  descriptor: number;
}

/** The file that is kept open for the next request. */
let kept: OpenFile | null = null;

/**
 * Opens a connection for one request, so that each sees the newest schema, and the server's connection is the last to close and
 * removes the WAL. With `next` it is kept for the request that follows: a new connection syncs the directory before a checkpoint,
 * for which the writer would have to wait.
 */
async function withFile(
  path: string,
  { next }: { next: boolean },
  work: (file: OpenFile) => boolean | Promise<boolean>,
): Promise<boolean> {
  if (kept !== null && kept.path !== path) close(kept);
  const file = kept ?? open(path);
  kept = null;
  let isKept = false;
  try {
    const answer = await work(file);
    isKept = next;
    return answer;
  } finally {
    if (isKept) kept = file;
    else close(file);
  }
}

function open(path: string): OpenFile {
  const descriptor = fs.openSync(path, "r+");
  let connection: DatabaseSync | null = null;
  try {
    connection = new DatabaseSync(path, { timeout: QUERY_LOCK_TIMEOUT_MS });
    connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0");
    return { path, connection, descriptor };
  } catch (error) {
    connection?.close();
    fs.closeSync(descriptor);
    throw error;
  }
}

/**
 * Closes the file while a read-only connection is open. Otherwise this process would end the WAL where its server has just been killed:
 * SQLite checkpoints and removes it with the last connection, unless that one is read-only. [DB363]
 */
function close({ path, connection, descriptor }: OpenFile): void {
  kept = null;
  let last: DatabaseSync | null = null;
  try {
    last = new DatabaseSync(path, { readOnly: true });
    last.prepare("SELECT count(*) FROM sqlite_schema").get();
  } catch {
    // For example, an instance has been deleted. The server's own connection is the last one.
  }
  try {
    connection.close();
    last?.close();
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * Runs a passive checkpoint. SQLite syncs the database file only once nothing is left in the WAL, so without `sync` the last
 * checkpoint has to sync everything.
 */
function checkpoint({ connection, descriptor }: OpenFile, { sync }: { sync: boolean }): boolean {
  connection.exec("PRAGMA wal_checkpoint(PASSIVE)");
  if (sync) fs.fdatasyncSync(descriptor);
  return false;
}

/**
 * Runs a checkpoint, then restarts the WAL by a transaction that changes nothing but the number of the commit. So the sync of the
 * new header and a truncation happen here and not in the server's next write. RESTART waits for the readers of the WAL; quick reads
 * end with their turn of the event loop. If a reader needs the WAL for longer, the WAL is not restarted.
 */
async function restartWal(
  connection: DatabaseSync,
  { walBytesLimit }: { walBytesLimit: number },
  nextMark: () => Promise<CommitMark>,
): Promise<boolean> {
  connection.exec(`PRAGMA busy_timeout = ${RESTART_WAIT_MS}; PRAGMA wal_checkpoint(RESTART);
    PRAGMA journal_size_limit = ${walBytesLimit}; BEGIN IMMEDIATE`);
  numberCommit(connection, await nextMark());
  connection.exec("COMMIT");
  return false;
}

/**
 * Replaces the content of a file in one commit: whatever happens, it has all of the one or all of the other. The source gets the
 * commit row first, which comes with its pages.
 */
async function replaceContent(
  { path, source }: { path: string; source: string },
  nextMark: () => Promise<CommitMark>,
): Promise<boolean> {
  const from = new DatabaseSync(source);
  // Keeps the WAL: the one with which pages are copied is not the last connection then.
  const file = open(path);
  try {
    carryOver(from, path);
    numberCommit(from, await nextMark());
    await backup(from, path, { rate: REPLACE_STEP_PAGES });
  } finally {
    close(file);
    from.close();
  }
  return false;
}

/**
 * Takes over from the replaced content what is not about its records: jobs and audit entries that have not been passed on, and the
 * number of the file. Those of the source were passed on before.
 */
function carryOver(source: DatabaseSync, path: string): void {
  source.prepare("ATTACH ? AS live").run(path);
  const { application_id: fileId } = source.prepare("PRAGMA live.application_id").get() ?? {};
  source.exec(`PRAGMA main.application_id = ${Number(fileId)}`);
  for (const table of [OUTBOX_TABLE, AUDIT_TABLE]) {
    source.exec(`DROP TABLE IF EXISTS main."${table}"`);
    const made = source.prepare("SELECT sql FROM live.sqlite_schema WHERE type = 'table' AND name = ?").get(table);
    if (made === undefined) continue;
    source.exec(`${made["sql"]}; INSERT INTO main."${table}" SELECT * FROM live."${table}"`);
  }
  source.exec("DETACH live");
}

function numberCommit(connection: DatabaseSync, mark: CommitMark): void {
  connection.prepare(UPDATE_COMMIT).run(...commitValues(mark));
}

/** Indexes texts in one transaction. The writer's next sync covers it. */
async function indexTexts(
  connection: DatabaseSync,
  { walBytesLimit }: { walBytesLimit: number },
  nextMark: () => Promise<CommitMark>,
): Promise<boolean> {
  connection.exec(`PRAGMA journal_size_limit = ${walBytesLimit}; BEGIN IMMEDIATE`);
  const first = connection.prepare(`SELECT "table", "id" FROM "${PENDING_TEXTS}" LIMIT 1`);
  const done = connection.prepare(`DELETE FROM "${PENDING_TEXTS}" WHERE "table" = ? AND "id" = ?`);
  const startedAt = performance.now();
  let next = first.get();
  while (next !== undefined) {
    // Both columns hold texts.
    done.run(next["table"] as string, next["id"] as string);
    next = first.get();
    if (performance.now() - startedAt >= INDEX_SLICE_MS) break;
  }
  numberCommit(connection, await nextMark());
  connection.exec("COMMIT");
  return next !== undefined;
}
