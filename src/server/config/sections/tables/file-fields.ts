import { describe, isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";

/** The part of a form with the JSON of a record. */
export const RECORD_PART = "record";

/** Checks the fields of files against the buckets of the same config. Broken parts are skipped. */
export function checkFileFields({ databases, storage }: PlainObject, report: Report): void {
  const buckets = isPlainObject(storage) && isPlainObject(storage["buckets"]) ? storage["buckets"] : {};
  for (const { fields, at } of schemasOf(databases, report.at("databases"))) {
    for (const [name, field] of Object.entries(fields)) {
      if (!isPlainObject(field) || field["type"] !== "file") continue;
      const { bucket } = field;
      if (name === RECORD_PART) at.at(name).say("needs another name: a form has the record itself under this one");
      if (typeof bucket !== "string" || Object.hasOwn(buckets, bucket)) continue;
      at.at(name)
        .at("bucket")
        .say(`${describe(bucket)} is not a bucket of this config`);
    }
  }
}

function* schemasOf(databases: unknown, report: Report): Generator<{ fields: PlainObject; at: Report }> {
  if (!isPlainObject(databases)) return;
  for (const [namespace, declared] of Object.entries(databases)) {
    const tables = isPlainObject(declared) ? declared["tables"] : undefined;
    if (!isPlainObject(tables)) continue;
    for (const [name, table] of Object.entries(tables)) {
      const fields = isPlainObject(table) ? table["schema"] : undefined;
      if (isPlainObject(fields)) yield { fields, at: report.at(namespace).at("tables").at(name).at("schema") };
    }
  }
}
