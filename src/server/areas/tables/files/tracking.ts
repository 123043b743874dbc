import type { Ids } from "../../../../kernel/ids.ts";
import { COMPARE_FILES_JOB, type ComparedFiles, type RecordPlace } from "../../../access/record-files.ts";
import { type Change, creating, type OutboxOptions, type Transaction } from "../../../db/index.ts";
import { FILES_PER_JOB } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import { filesIn } from "./values.ts";

// Which record has a file, by the file's id. Kept in the transaction of the record, so it is never wrong about it.

export const FILES_TABLE = "_platform_files";
export const FILES = `"${FILES_TABLE}"`;
const CREATE = `CREATE TABLE IF NOT EXISTS ${FILES} (
  "id" TEXT NOT NULL PRIMARY KEY, "table" TEXT NOT NULL, "record" TEXT NOT NULL) STRICT, WITHOUT ROWID`;
const TABLE = { name: FILES_TABLE, create: [CREATE] };
const ADD = `INSERT INTO ${FILES} ("id", "table", "record") VALUES (?, ?, ?)`;
const REMOVE = `DELETE FROM ${FILES} WHERE "id" = ?`;

/**
 * Returns the outbox options of a file of tables that also keep its list of files. Ids that a write has taken from records are
 * passed to the job that removes their bytes, in the transaction of the write. [TB728]
 */
export function trackingFiles(
  options: OutboxOptions | undefined,
  place: RecordPlace,
  { models, ids }: { models: Iterable<TableModel>; ids: Ids },
): OutboxOptions | undefined {
  const byName = new Map([...models].flatMap((model) => (model.files.length > 0 ? [[model.name, model]] : [])));
  if (options === undefined || byName.size === 0) return options;
  return {
    ...options,
    onWritten(tx, changes) {
      options.onWritten?.(tx, changes);
      const removed = changes.flatMap((change) => noted(tx, byName.get(change.table), change));
      for (let from = 0; from < removed.length; from += FILES_PER_JOB) {
        const data: ComparedFiles = { ...place, fileIds: removed.slice(from, from + FILES_PER_JOB) };
        const job = { id: ids.uuid(), names: [COMPARE_FILES_JOB], data: JSON.stringify(data) };
        tx.enqueue({ ...job, group: null, key: null, dueAt: null, secret: null });
      }
    },
  };
}

/** Notes the files that the change gives to a record. Returns those that it takes away. */
function noted(tx: Transaction, model: TableModel | undefined, { id, before, after }: Change): string[] {
  if (model === undefined) return [];
  const former = new Set(idsOf(model, before));
  const present = new Set(idsOf(model, after));
  for (const fileId of present)
    if (!former.has(fileId)) creating(tx, TABLE, () => tx.query(ADD).run(fileId, model.name, id));
  const removed = [...former].filter((fileId) => !present.has(fileId));
  for (const fileId of removed) creating(tx, TABLE, () => tx.query(REMOVE).run(fileId));
  return removed;
}

function idsOf({ files }: TableModel, record: Change["before"]): string[] {
  return record === null ? [] : files.flatMap(({ name }) => filesIn(record[name]).map(({ id }) => id));
}
