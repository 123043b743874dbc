/** Quotes `name` as an SQL identifier; any characters are allowed. Names come from the declared schema, never from a request. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes `text` as an SQL string literal, for DDL, which cannot have bound values. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
