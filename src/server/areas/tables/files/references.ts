import type { FileReferences } from "../../../access/record-files.ts";
import { foundIn, quoteIdentifier, type Transaction } from "../../../db/index.ts";
import type { Namespace, Table } from "../records/namespaces.ts";
import { FILES, FILES_TABLE } from "./tracking.ts";
import { filesIn } from "./values.ts";

const FIND = `SELECT "table", "record" FROM ${FILES} WHERE "id" = ?`;

export function createFileReferences(namespaces: ReadonlyMap<string, Namespace>): FileReferences {
  return {
    async having({ namespace: name, instanceId }, fileIds) {
      const namespace = namespaces.get(name);
      if (namespace === undefined || (namespace.kind === "dynamic") !== (instanceId !== null)) return new Set(fileIds);
      const file =
        namespace.kind === "static" ? namespace.file : namespace.instances.get(instanceId ?? "", { create: false });
      if (file === null) return new Set();
      // A write resolves when what it has read is on disk: a deletion that the disk could still lose removes nothing.
      const had = await file.write((tx) => fileIds.filter((fileId) => isHad(tx, namespace.tables, fileId)));
      return new Set(had);
    },
    exists({ namespace: name, instanceId }) {
      const namespace = namespaces.get(name);
      return namespace?.kind !== "dynamic" || namespace.instances.exists(instanceId ?? "");
    },
  };
}

/** Whether a record has the file. The record itself is read too: the SQL of migrations changes records alone. */
function isHad(tx: Transaction, tables: ReadonlyMap<string, Table>, fileId: string): boolean {
  const found = foundIn(FILES_TABLE, () => tx.query<{ table: string; record: string }>(FIND).get(fileId));
  if (found === null) return false;
  const model = tables.get(found.table)?.model;
  // A table or field that is not declared any more keeps its records.
  if (model === undefined || model.files.length === 0) return true;
  const columns = model.files.map(({ name }) => quoteIdentifier(name)).join(", ");
  const row = tx
    .query<Record<string, string | null>>(`SELECT ${columns} FROM ${model.sql} WHERE "id" = ?`)
    .get(found.record);
  if (row === null) return false;
  return Object.values(row).some((text) => text !== null && filesIn(JSON.parse(text)).some(({ id }) => id === fileId));
}
