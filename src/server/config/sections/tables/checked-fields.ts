/** Tokens of an SQL expression: texts, quoted names and words. */
const TOKENS = /'(?:[^']|'')*'|"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|\[([^\]]*)\]|([\p{L}_$][\p{L}\p{N}_$]*)/gu;

/** Returns the fields that each `check` of the table compares: those named in its expression, outside of texts. */
export function checkedFields(
  columns: readonly { name: string; field: { check?: string } | null }[],
): ReadonlySet<string>[] {
  // SQLite compares names of columns without the case of A–Z.
  const byName = new Map(columns.map(({ name }) => [name.toLowerCase(), name]));
  return columns.flatMap(({ field }) => {
    if (field?.check === undefined) return [];
    const fields = new Set<string>();
    for (const [, quoted, ticked, bracketed, word] of field.check.matchAll(TOKENS)) {
      const name = byName.get((quoted ?? ticked ?? bracketed ?? word ?? "").toLowerCase());
      if (name !== undefined) fields.add(name);
    }
    return [fields];
  });
}
