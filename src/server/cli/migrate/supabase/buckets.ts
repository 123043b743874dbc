import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { Code } from "../code.ts";
import type { Remarks } from "../remarks.ts";
import { ruleCode } from "../rules/emit.ts";
import { FALSE, type Formula, isConstant, join as joined, TRUE } from "../rules/formula.ts";
import { type Expression, parseExpression } from "./expression.ts";
import { CALLERS, isOf } from "./plan.ts";
import { isGranted } from "./roles.ts";
import type { PgCommand, PgPolicy, PgSource } from "./source.ts";
import { NotUnderstood } from "./tokens.ts";

/** A bucket of the storage, with rules of this server. */
export interface MovedBucket {
  id: string;
  name: string;
  maxFileSize: number | null;
  rules: Readonly<Record<"read" | "write" | "delete", Code | null>>;
  comments: readonly string[];
}

/** A file of the storage. */
export interface MovedFile {
  bucket: string;
  key: string;
  /** The file with its bytes; null: it is not in the folder. */
  path: string | null;
  type: string;
  owner: string | null;
  createdAt: string | null;
}

const BUCKET_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const OBJECTS = { schema: "storage", name: "objects" };

/** Plans the buckets, with rules as the policies of `storage.objects` have them. */
export function bucketsOf(source: PgSource, remarks: Remarks): MovedBucket[] {
  const buckets: MovedBucket[] = [];
  for (const row of source.rows({ schema: "storage", name: "buckets" })) {
    const id = row["id"] ?? "";
    if (!BUCKET_NAME.test(id)) {
      remarks.lost(`bucket ${id}`, "its name is none that a bucket can have here");
      continue;
    }
    const limit = Number(row["file_size_limit"] ?? Number.NaN);
    const { rules, comments } = rulesOf(source, id, remarks);
    if (row["public"] === "t" || row["public"] === "true") {
      const text =
        "is public there: who has an address may download. Here that would let everybody list as well; `read: true` does both";
      remarks.look(`bucket ${id}`, text);
      comments.push(
        "Public there: everybody downloads by the address, and lists by a policy. `read: true` allows both.",
      );
    }
    buckets.push({
      id,
      name: id,
      maxFileSize: Number.isSafeInteger(limit) && limit > 0 ? limit : null,
      rules,
      comments,
    });
  }
  return buckets;
}

function rulesOf(
  source: PgSource,
  bucket: string,
  remarks: Remarks,
): Pick<MovedBucket, "rules"> & { comments: string[] } {
  const table = source.table("storage", "objects");
  const why = new Set<string>();
  const ask = (command: PgCommand, isNew: boolean): Formula => {
    if (table?.isSecured !== true || !CALLERS.every((caller) => isGranted(table, caller, command))) return FALSE;
    const concerned = table.policies.filter((policy) => policy.command === "all" || policy.command === command);
    const formulas = concerned.map((policy) => ({
      policy,
      formula: formulaOf(policy, { bucket, command, isNew, why }),
    }));
    const permissive = formulas.filter(({ policy }) => !policy.isRestrictive).map(({ formula }) => formula);
    const restrictive = formulas.filter(({ policy }) => policy.isRestrictive).map(({ formula }) => formula);
    return joined("and", [joined("or", permissive), ...restrictive]);
  };
  const read = ask("select", false);
  // An upload here may replace a file, which needs another policy there.
  const write = joined("and", [ask("insert", true), ask("update", true), ask("select", true)]);
  const remove = joined("and", [ask("delete", false), read]);
  if (isConstant(write, false) && !isConstant(ask("insert", true), false)) {
    remarks.look(
      `bucket ${bucket}`,
      "nobody uploads here: an upload may replace a file, which the policies for UPDATE (and SELECT) deny",
    );
  }
  const comments = [...why].map((text) => `Stricter here: ${text}.`);
  for (const text of why) remarks.look(`bucket ${bucket}`, `is stricter here: ${text}`);
  const code = (formula: Formula): Code | null => ruleCode(formula, { action: "file", meCode: "" });
  return { rules: { read: code(read), write: code(write), delete: code(remove) }, comments };
}

interface Asked {
  bucket: string;
  command: PgCommand;
  /** Whether the file is being written: it will be the caller's. */
  isNew: boolean;
  why: Set<string>;
}

function formulaOf(policy: PgPolicy, asked: Asked): Formula {
  const roles = CALLERS.filter((caller) => policy.roles.some((role) => isOf(role, caller)));
  if (roles.length === 0) return policy.isRestrictive ? TRUE : FALSE;
  const sqls =
    asked.command === "insert"
      ? [policy.check ?? policy.using]
      : [policy.using, ...(asked.command === "update" ? [policy.check] : [])];
  try {
    const parts = sqls.map((sql) => (sql === null ? TRUE : holds(parseExpression(sql), asked)));
    if (roles.length === 2) return joined("and", parts);
    if (policy.isRestrictive) return joined("and", parts);
    return joined("and", [roles[0] === "anon" ? code("auth === null") : code("true", true), ...parts]);
  } catch (cause) {
    if (!(cause instanceof NotUnderstood)) throw cause;
    asked.why.add(`policy "${policy.name}": ${cause.message}`);
    return FALSE;
  }
}

const code = (text: string, needsAuth = false): Formula => ({
  kind: "code",
  code: text,
  needs: needsAuth ? ["auth"] : [],
});

/** Returns what holds where an expression about a file is true. Errors: NotUnderstood. */
function holds(expression: Expression, asked: Asked): Formula {
  if (expression.kind === "and" || expression.kind === "or") {
    return joined(
      expression.kind,
      expression.parts.map((part) => holds(part, asked)),
    );
  }
  if (expression.kind === "constant") return expression.value === true ? TRUE : FALSE;
  if (expression.kind !== "comparison" || expression.sign !== "=") throw new NotUnderstood("a condition on files");
  const sides = [termOf(expression.left), termOf(expression.right)];
  const value = (kind: string) => sides.find((one) => one.kind === kind);
  const constant = value("constant");
  if (value("bucket") !== undefined && constant !== undefined) return constant.text === asked.bucket ? TRUE : FALSE;
  if (value("role") !== undefined && constant !== undefined) {
    if (constant.text === "anon") return code("auth === null");
    return constant.text === "authenticated" ? code("true", true) : FALSE;
  }
  const folder = value("folder");
  if (folder !== undefined) {
    const levels = Number(folder.text);
    const wanted =
      value("caller") !== undefined ? "auth.id" : constant === undefined ? null : JSON.stringify(constant.text);
    if (wanted === null || !Number.isSafeInteger(levels) || levels < 1) throw new NotUnderstood("a folder of a file");
    const path = `file.key.split("/").slice(0, -1)[${levels - 1}]`;
    return code(`${path} === ${wanted}`, wanted === "auth.id");
  }
  if (value("owner") !== undefined && value("caller") !== undefined) {
    // A file that is replaced may be another's, which a rule of uploads is not told.
    if (asked.command === "update") throw new NotUnderstood("the owner of a file that is replaced");
    return asked.isNew ? code("true", true) : code("file.uploadedBy === auth.id", true);
  }
  throw new NotUnderstood("a condition on files");
}

interface FileTerm {
  kind: "bucket" | "owner" | "caller" | "role" | "folder" | "constant";
  text: string;
}

function termOf(expression: Expression): FileTerm {
  if (expression.kind === "cast") return termOf(expression.of);
  const { kind } = expression;
  if (kind === "select" && expression.select.from === null && expression.select.values.length === 1) {
    const [value] = expression.select.values;
    if (value !== undefined) return termOf(value);
  }
  if (kind === "constant") return { kind: "constant", text: String(expression.value) };
  if (kind === "column") {
    const name = expression.path.at(-1) ?? "";
    if (name === "bucket_id") return { kind: "bucket", text: "" };
    if (name === "owner" || name === "owner_id") return { kind: "owner", text: "" };
  }
  if (kind === "call" && expression.name === "auth.uid") return { kind: "caller", text: "" };
  if (kind === "call" && expression.name === "auth.role") return { kind: "role", text: "" };
  if (kind === "index" && expression.of.kind === "call" && expression.of.name === "storage.foldername") {
    const [of] = expression.of.values;
    const isName = of?.kind === "column" && of.path.at(-1) === "name";
    if (isName && expression.at.kind === "constant") return { kind: "folder", text: String(expression.at.value) };
  }
  throw new NotUnderstood("a value of a file");
}

/** Yields the files of the buckets that are moved, with their bytes in a folder `BUCKET/NAME`. */
export function* filesOf(
  source: PgSource,
  buckets: readonly MovedBucket[],
  folder: string | null,
): Generator<MovedFile> {
  const known = new Set(buckets.map(({ id }) => id));
  for (const row of source.rows(OBJECTS)) {
    const [bucket, key] = [row["bucket_id"] ?? "", row["name"] ?? ""];
    // An empty folder is a file of this name there.
    if (!known.has(bucket) || basename(key) === ".emptyFolderPlaceholder") continue;
    const isInside = !key.split("/").some((part) => part === "" || part === "." || part === "..");
    const path = folder === null || !isInside ? null : join(folder, bucket, key);
    const isThere = path !== null && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
    const metadata: unknown = JSON.parse(row["metadata"] ?? "{}");
    const type = isJsonObject(metadata) ? metadata["mimetype"] : undefined;
    yield {
      bucket,
      key,
      path: isThere ? path : null,
      type: typeof type === "string" ? type : "application/octet-stream",
      owner: row["owner_id"] ?? row["owner"] ?? null,
      createdAt: row["created_at"] ?? null,
    };
  }
}
