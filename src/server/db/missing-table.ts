// Tables of the server that a file gets with the first row they hold.

/** A transaction, as far as tables are made in it. */
interface Statements {
  query(sql: string): { run(): unknown };
}

/** Whether a statement failed because its file lacks the table; without `table`, any table. */
export const isMissingTable = (cause: unknown, table = ""): boolean =>
  cause instanceof Error && cause.message.startsWith(`no such table: ${table}`);

/** Returns what `read` finds; null also for a file without the table. Errors: all others of `read`. */
export function foundIn<T>(table: string, read: () => T | null): T | null {
  try {
    return read();
  } catch (cause) {
    if (isMissingTable(cause, table)) return null;
    throw cause;
  }
}

/** Runs the first statement of a write for a table, which is created where the file lacks it. Errors: those of `work`. */
export function creating<T>(tx: Statements, table: { name: string; create: readonly string[] }, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isMissingTable(cause, table.name)) throw cause;
    for (const sql of table.create) tx.query(sql).run();
    return work();
  }
}
