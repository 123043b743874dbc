import { NAME_LENGTH_MAX } from "../limits.ts";

const WITH_HYPHEN = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const WITHOUT_HYPHEN = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Whether every object has this member: a lookup by such a name would find what nobody declared. */
const isObjectMember = (name: string): boolean => name in Object.prototype || name === "prototype";
/** Names that SQLite reserves, and those of tables that this server adds to the declared ones. */
const RESERVED_PREFIX = /^(_platform|sqlite_)/i;
/** Matches tables of full-text indexes: that of a table `t` is `t_fts`, and SQLite stores it in `t_fts_data` and others. */
const FTS_TABLE = /_fts(_(data|idx|content|docsize|config))?$/i;
/** SQLite's table functions: a table of the same name would shadow the function from which filters are built. */
const TABLE_FUNCTION = /^(pragma_.*|jsonb?_(each|tree)|dbstat|fts3tokenize|fts4aux|fts5vocab|bytecode|tables_used)$/i;
/** SQLite's names of the row id: a field of such a name would shadow it from the full-text index. */
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

/**
 * Describes the problem of a name of a namespace, bucket, index, room or key, which appears in paths, scopes and file names; null:
 * valid.
 */
export const nameProblem = (name: string): string | null => identifierProblem(name, WITH_HYPHEN);

export function tableNameProblem(name: string): string | null {
  if (FTS_TABLE.test(name)) return "must not end in _fts, which is reserved for full-text indexes";
  if (TABLE_FUNCTION.test(name)) return "is the name of a table that SQLite has built in";
  return identifierProblem(name, WITHOUT_HYPHEN);
}

/** Describes the problem of a field's name; null: valid. `id`, `createdAt` and `updatedAt` pass: `checkAutomaticField` checks them. */
export function fieldNameProblem(name: string): string | null {
  if (ROW_NAMES.has(name.toLowerCase())) return "is SQLite's own name of the row id";
  const automatic = AUTOMATIC_FIELDS.find((field) => field.toLowerCase() === name.toLowerCase());
  if (automatic !== undefined && automatic !== name) return `differs from ${automatic} only in case`;
  return identifierProblem(name, WITHOUT_HYPHEN);
}

/** Describes the problem of an action's or timer's name; null: valid. Lookup is by name, so most names are allowed. */
export const handlerNameProblem = (name: string): string | null =>
  isObjectMember(name) || name === "" ? "cannot be the name of a handler" : null;
