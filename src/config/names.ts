const NAME_LENGTH_MAX = 64;
const WITH_HYPHEN = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const WITHOUT_HYPHEN = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Every object answers to these: a look-up by name would find what nobody declared. */
const isObjectMember = (name: string): boolean => name in Object.prototype || name === "prototype";
/** What SQLite, and this server beside the declared tables, call their own. */
const RESERVED_PREFIX = /^(_platform|sqlite_)/i;
/** The full-text index of a table `t` is `t_fts`, and SQLite keeps it in `t_fts_data` and so on. */
const FTS_TABLE = /_fts(_(data|idx|content|docsize|config))?$/i;
/** What SQLite answers to as a table without being one: a table called so would stand before what filters are made of. */
const TABLE_FUNCTION = /^(pragma_.*|jsonb?_(each|tree)|dbstat|fts3tokenize|fts4aux|fts5vocab|bytecode|tables_used)$/i;
const AUTOMATIC_FIELDS = ["id", "createdAt", "updatedAt"];
/** Names by which SQLite knows the row itself: a field called so would hide it from the full-text index. */
const ROW_NAMES = new Set(["rowid", "_rowid_", "oid"]);

function identifierProblem(name: string, form: RegExp): string | null {
  if (isObjectMember(name)) return "is a name that JavaScript objects have for themselves";
  if (name.length > NAME_LENGTH_MAX) return `must be at most ${NAME_LENGTH_MAX} characters long, got ${name.length}`;
  if (!form.test(name)) {
    const hyphen = form === WITH_HYPHEN ? ", _ and -" : " and _";
    return `must be a name of letters, digits${hyphen} that does not begin with a digit or a hyphen`;
  }
  return RESERVED_PREFIX.test(name) ? "must not begin with _platform or sqlite_, which are reserved" : null;
}

/** Namespaces, buckets, indexes, rooms, keys: what stands in paths, scopes and file names. */
export const nameProblem = (name: string): string | null => identifierProblem(name, WITH_HYPHEN);

export function tableNameProblem(name: string): string | null {
  if (FTS_TABLE.test(name)) return "must not end in _fts, which is how full-text indexes are called";
  if (TABLE_FUNCTION.test(name)) return "is a name that SQLite has for a table of its own";
  return identifierProblem(name, WITHOUT_HYPHEN);
}

/** `id`, `createdAt` and `updatedAt` are for the caller, who knows whether they are being switched off. */
export function fieldNameProblem(name: string): string | null {
  if (ROW_NAMES.has(name.toLowerCase())) return "is how SQLite calls the row itself";
  const automatic = AUTOMATIC_FIELDS.find((field) => field.toLowerCase() === name.toLowerCase());
  if (automatic !== undefined && automatic !== name) return `differs from ${automatic} only in case`;
  return identifierProblem(name, WITHOUT_HYPHEN);
}

/** Action types and timers are looked up by name, and are otherwise free. */
export const handlerNameProblem = (name: string): string | null =>
  isObjectMember(name) || name === "" ? "cannot be the name of a handler" : null;
