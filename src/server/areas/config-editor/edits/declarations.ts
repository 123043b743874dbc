import { nameProblem, tableNameProblem } from "../../../config/shape/names.ts";
import { addMember, memberOf, objectOf, setMember } from "../syntax/objects.ts";
import { printBlock } from "../syntax/print.ts";
import type { EditOf } from "./edit.ts";
import { type Edited, type Editing, namespaceOf, usersTable } from "./place.ts";

/** Adds a namespace without tables. */
export function addNamespace({ source, edit, fault }: Editing<EditOf<"addNamespace">>): Edited {
  const { namespace, instance = false } = edit;
  const wrong = nameProblem(namespace);
  if (wrong !== null) throw fault("namespace", "invalid_value", `namespace ${wrong}`);
  const value = instance ? { instance, access: {}, tables: {} } : { tables: {} };
  const databases = objectOf(source.root, "databases", "");
  if (databases === null) {
    const print = printed({ [namespace]: value });
    return { splices: addMember(source, source.root, "databases", print) };
  }
  if (memberOf(databases, namespace, "databases") !== null) {
    throw fault("namespace", "not_unique", `There is a namespace "${namespace}" already`);
  }
  return { splices: addMember(source, databases, namespace, printed(value)) };
}

/** Adds a table without fields, to which nobody has access. */
export function addTable(editing: Editing<EditOf<"addTable">>): Edited {
  const { source, edit, fault } = editing;
  const { namespace, table } = edit;
  const wrong = tableNameProblem(table);
  if (wrong !== null) throw fault("table", "invalid_value", `table ${wrong}`);
  const object = namespaceOf(editing, namespace);
  const path = `databases.${namespace}`;
  const tables = objectOf(object, "tables", path);
  const users = usersTable(source);
  const isTaken = [tables, objectOf(object, "views", path)].some(
    (declared) => declared !== null && memberOf(declared, table, path) !== null,
  );
  if (isTaken || (users !== null && users.namespace === namespace && users.table === table)) {
    throw fault("table", "not_unique", `There is a table "${table}" in namespace "${namespace}" already`);
  }
  const value = { schema: {}, access: {} };
  const splices =
    tables === null
      ? setMember(source, object, { name: "tables", path, print: printed({ [table]: value }) })
      : addMember(source, tables, table, printed(value));
  return { splices };
}

/** Adds a bucket to which nobody has access. */
export function addBucket({ source, edit, fault }: Editing<EditOf<"addBucket">>): Edited {
  const { bucket } = edit;
  const wrong = nameProblem(bucket);
  if (wrong !== null) throw fault("bucket", "invalid_value", `bucket ${wrong}`);
  const storage = objectOf(source.root, "storage", "");
  const value = { access: {} };
  if (storage === null) {
    return { splices: addMember(source, source.root, "storage", printed({ buckets: { [bucket]: value } })) };
  }
  const buckets = objectOf(storage, "buckets", "storage");
  if (buckets === null) {
    return { splices: addMember(source, storage, "buckets", printed({ [bucket]: value })) };
  }
  if (memberOf(buckets, bucket, "storage.buckets") !== null) {
    throw fault("bucket", "not_unique", `There is a bucket "${bucket}" already`);
  }
  return { splices: addMember(source, buckets, bucket, printed(value)) };
}

/** Prints an object with a line for each member. */
const printed =
  (value: object) =>
  (indent: string): string =>
    printBlock(value, indent);
