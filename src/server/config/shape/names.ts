import { NAME_LENGTH_MAX } from "../limits.ts";

const WITH_HYPHEN = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const WITHOUT_HYPHEN = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Members of every object: a look-up by such a name would find what nobody declared. */
const isObjectMember = (name: string): boolean => name in Object.prototype || name === "prototype";
/** Names of SQLite, and of the tables that this server adds to the declared ones. */
const RESERVED_PREFIX = /^(_platform|sqlite_)/i;
/** The full-text index of a table `t` is `t_fts`, and SQLite keeps it in `t_fts_data` and others. */
const FTS_TABLE = /_fts(_(data|idx|content|docsize|config))?$/i;
/** Table functions of SQLite: a table of the same name would hide the function that filters are made of. */
const TABLE_FUNCTION = /^(pragma_.*|jsonb?_(each|tree)|dbstat|fts3tokenize|fts4aux|fts5vocab|bytecode|tables_used)$/i;
/** SQLite's names of the row id: a field with such a name would hide it from the full-text index. */
const ROW_NAMES = new Set(["rowid", "_rowid_", "oid"]);

/** Fields that every table has. */
export const AUTOMATIC_FIELDS: readonly string[] = ["id", "createdAt", "updatedAt"];

function identifierProblem(name: string, form: RegExp): string | null {
  if (isObjectMember(name)) return "is the name of a member that all JavaScript objects have";
  if (name.length > NAME_LENGTH_MAX) return `must be at most ${NAME_LENGTH_MAX} characters long, got ${name.length}`;
  if (!form.test(name)) {
    const hyphen = form === WITH_HYPHEN ? ", _ and -" : " and _";
    return `must be a name of letters, digits${hyphen} that begins with a letter or _`;
  }
  return RESERVED_PREFIX.test(name) ? "must not begin with _platform or sqlite_, which are reserved" : null;
}

/** For namespaces, buckets, indexes, rooms and keys: names that appear in paths, scopes and file names. */
export const nameProblem = (name: string): string | null => identifierProblem(name, WITH_HYPHEN);

export function tableNameProblem(name: string): string | null {
  if (FTS_TABLE.test(name)) return "must not end in _fts, which is reserved for full-text indexes";
  if (TABLE_FUNCTION.test(name)) return "is the name of a table that SQLite has built in";
  return identifierProblem(name, WITHOUT_HYPHEN);
}

/** `id`, `createdAt` and `updatedAt` pass: their own check is `checkAutomaticField`. */
export function fieldNameProblem(name: string): string | null {
  if (ROW_NAMES.has(name.toLowerCase())) return "is SQLite's own name of the row id";
  const automatic = AUTOMATIC_FIELDS.find((field) => field.toLowerCase() === name.toLowerCase());
  if (automatic !== undefined && automatic !== name) return `differs from ${automatic} only in case`;
  return identifierProblem(name, WITHOUT_HYPHEN);
}

/** Action types and timers are looked up by name, and may have any other name. */
export const handlerNameProblem = (name: string): string | null =>
  isObjectMember(name) || name === "" ? "cannot be the name of a handler" : null;
