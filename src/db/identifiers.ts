/** `name` as an SQL identifier, whatever is in it. Names come from the declared schema, never from a request. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** `text` as an SQL string literal: for DDL, where nothing can be bound. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
