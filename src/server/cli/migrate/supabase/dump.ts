import { statSync } from "node:fs";
import { CommandError } from "../../errors.ts";
import type { PgColumn, PgGrant, PgPolicy, PgRow, PgSource, PgTable } from "./source.ts";
import { NotUnderstood, type Place, type Token, TokenReader, tokensOf } from "./tokens.ts";

const NEW_LINE = 10;

/** A part of the dump with rows: lines of COPY, or the values of an INSERT. */
interface Rows {
  columns: readonly string[] | null;
  start: number;
  end: number;
  isCopy: boolean;
}

/** Reads a dump in plain form, as `pg_dump` writes it. Errors: CommandError for a file that is none. */
export function readDump(path: string): PgSource {
  if (statSync(path).size === 0) throw new CommandError(`${path} is empty`);
  const bytes = Bun.mmap(path);
  const decoder = new TextDecoder();
  const textOf = (start: number, end: number): string => decoder.decode(bytes.subarray(start, end));
  const dump = new Dump();
  for (const statement of statementsOf(bytes, textOf)) {
    if (statement.kind === "sql") dump.read(statement.text, statement.start, statement.end);
    else dump.addRows(statement.text, statement);
  }
  if (dump.tables.size === 0)
    throw new CommandError(`${path} is no dump of PostgreSQL in plain form: it makes no table`);
  return {
    tables: [...dump.tables.values()],
    enums: dump.enums,
    others: dump.others,
    table: (schema, name) => dump.tables.get(`${schema}.${name}`) ?? null,
    *rows({ schema, name }) {
      const table = dump.tables.get(`${schema}.${name}`);
      for (const rows of dump.rows.get(`${schema}.${name}`) ?? []) {
        const columns = rows.columns ?? table?.columns.map((column) => column.name) ?? [];
        const found = rows.isCopy ? copied(bytes, textOf, rows) : inserted(textOf(rows.start, rows.end));
        for (const values of found) yield rowOf(columns, values);
      }
    },
  };
}

const rowOf = (columns: readonly string[], values: readonly (string | null)[]): PgRow =>
  Object.fromEntries(columns.map((name, index) => [name, values[index] ?? null]));

type Statement = { kind: "sql" | "copy"; text: string; start: number; end: number };

/** Yields the statements of a dump, and the rows behind each COPY. */
function* statementsOf(bytes: Uint8Array, textOf: (start: number, end: number) => string): Generator<Statement> {
  let text = "";
  let start = 0;
  let open: string | null = null;
  for (let at = 0; at < bytes.byteLength; ) {
    const found = bytes.indexOf(NEW_LINE, at);
    const end = found < 0 ? bytes.byteLength : found + 1;
    const line = textOf(at, end);
    if (text === "") {
      start = at;
      // Commands of psql, and comments between statements.
      if (/^(?:\\|--|\s*$)/.test(line)) {
        at = end;
        continue;
      }
    }
    text += line;
    const ended = endOf(line, open);
    open = ended.open;
    at = end;
    if (!ended.isEnd) continue;
    if (/^COPY\s[\s\S]*\sFROM\s+stdin;\s*$/i.test(text)) {
      const close = endOfRows(bytes, at);
      yield { kind: "copy", text, start: at, end: close.end };
      at = close.next;
    } else yield { kind: "sql", text, start, end };
    text = "";
  }
}

/** Whether a line ends a statement; `open`: the quote that is open behind it. */
function endOf(line: string, before: string | null): { isEnd: boolean; open: string | null } {
  let open = before;
  let isEnd = false;
  for (let at = 0; at < line.length; ) {
    if (open !== null) {
      const close = line.indexOf(open, at);
      if (close < 0) return { isEnd: false, open };
      at = close + open.length;
      open = null;
      continue;
    }
    const found = /--|\/\*|'|"|\$(?:[A-Za-z_]\w*)?\$|;/g;
    found.lastIndex = at;
    const sign = found.exec(line);
    if (sign === null || sign[0] === "--") break;
    at = found.lastIndex;
    if (sign[0] === ";") isEnd = line.slice(at).trim() === "";
    else open = sign[0] === "/*" ? "*/" : sign[0];
  }
  return { isEnd: isEnd && open === null, open };
}

/** Returns the end of the lines behind a COPY, and the place behind the line that ends them. */
function endOfRows(bytes: Uint8Array, from: number): { end: number; next: number } {
  for (let at = from; at < bytes.byteLength; ) {
    const found = bytes.indexOf(NEW_LINE, at);
    const end = found < 0 ? bytes.byteLength : found;
    if (bytes[at] === 92 && bytes[at + 1] === 46 && end - at <= 3) return { end: at, next: end + 1 };
    at = end + 1;
  }
  throw new CommandError("the dump ends within the rows of a table: it is not whole");
}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

/** Yields the values of lines of COPY. */
function* copied(
  bytes: Uint8Array,
  textOf: (start: number, end: number) => string,
  { start, end }: Rows,
): Generator<(string | null)[]> {
  for (let at = start; at < end; ) {
    const found = bytes.indexOf(NEW_LINE, at);
    const close = found < 0 ? end : found;
    yield textOf(at, close)
      .replace(/\r$/, "")
      .split("\t")
      .map((cell) => (cell === "\\N" ? null : cell.replace(/\\(.)/g, (_, sign: string) => ESCAPES[sign] ?? sign)));
    at = close + 1;
  }
}

/** Yields the values of an INSERT. Errors: NotUnderstood for values that are no constants. */
function* inserted(sql: string): Generator<(string | null)[]> {
  const reader = new TokenReader(tokensOf(sql));
  while (!reader.skip("values")) reader.take();
  do {
    const values: (string | null)[] = [];
    reader.expect("(");
    do values.push(constant(reader));
    while (reader.skip(","));
    reader.expect(")");
    yield values;
  } while (reader.skip(","));
}

function constant(reader: TokenReader): string | null {
  const sign = reader.skip("-") ? "-" : "";
  const token = reader.take();
  if (token.kind === "name" && !["null", "true", "false", "default"].includes(token.text)) {
    throw new NotUnderstood(`the value ${token.text} of an INSERT`);
  }
  while (reader.skip("::")) typeOf(reader);
  return token.kind === "name" && ["null", "default"].includes(token.text) ? null : sign + token.text;
}

const ENDS_TYPE = new Set([
  "not",
  "default",
  "generated",
  "constraint",
  "null",
  "collate",
  "primary",
  "unique",
  "references",
  "check",
]);

/** Takes a type: `character varying(20)`, `public.mood`, `text[]`. */
export function typeOf(reader: TokenReader): string {
  let type = "";
  for (let token = reader.peek(); token !== undefined; token = reader.peek()) {
    const isWord = token.kind === "name" || token.kind === "quoted";
    if (token.kind === "name" && ENDS_TYPE.has(token.text)) break;
    if (isWord && type !== "" && !type.endsWith(".") && !CONTINUES_TYPE.has(token.text)) break;
    if (token.text === "[" && reader.skip("[", "]")) {
      type += "[]";
      continue;
    }
    if (!isWord && token.text !== "(" && token.text !== ".") break;
    if (token.text === "(") {
      type += `(${reader
        .group()
        .map(({ text }) => text)
        .join("")})`;
      continue;
    }
    type += isWord && type !== "" && !type.endsWith(".") ? ` ${token.text}` : token.text;
    reader.take();
  }
  return type;
}

const CONTINUES_TYPE = new Set(["varying", "precision", "with", "without", "time", "zone"]);

/** Kinds that are read, and kinds that the report names alone. */
const READ = new Set(["table", "type", "policy", "index", "unique"]);
const OTHERS = new Set(["function", "trigger", "view", "materialized", "or", "procedure"]);

/** Collects what the statements of a dump declare. */
class Dump {
  readonly tables = new Map<string, PgTable>();
  readonly enums = new Map<string, readonly string[]>();
  readonly others: { kind: string; place: string; sql: string }[] = [];
  readonly rows = new Map<string, Rows[]>();

  addRows(copy: string, { start, end }: { start: number; end: number }): void {
    const reader = new TokenReader(tokensOf(copy));
    reader.expect("copy");
    const place = reader.place();
    this.#addRows(place, { columns: reader.is("(") ? reader.names() : null, start, end, isCopy: true });
  }

  /** Reads a statement; what is of no use for a move is left out. */
  read(sql: string, start: number, end: number): void {
    const word = /^\s*(\w+)\s+(\w+)/.exec(sql);
    const [first, second] = [word?.[1]?.toLowerCase() ?? "", word?.[2]?.toLowerCase() ?? ""];
    const isCreated = first === "create";
    if (first === "insert") this.#insert(sql, start, end);
    else if (isCreated && OTHERS.has(second)) this.#other(sql);
    else if (first === "grant" || (first === "alter" && second === "table") || (isCreated && READ.has(second))) {
      const reader = new TokenReader(tokensOf(sql));
      if (first === "grant") this.#grant(reader);
      else if (first === "alter") this.#alter(sql, reader);
      else this.#create(sql, reader);
    }
  }

  #create(sql: string, reader: TokenReader): void {
    reader.expect("create");
    if (reader.skip("table")) this.#table(sql, reader);
    else if (reader.skip("type")) this.#type(reader);
    else if (reader.skip("policy")) this.#policy(sql, reader);
    else this.#index(sql, reader);
  }

  #addRows({ schema, name }: Place, rows: Rows): void {
    const key = `${schema}.${name}`;
    this.rows.set(key, [...(this.rows.get(key) ?? []), rows]);
  }

  #insert(sql: string, start: number, end: number): void {
    const head = /^\s*INSERT\s+INTO\s+[\s\S]*?\s(?:OVERRIDING\s+\w+\s+VALUE\s+)?VALUES\b/i.exec(sql);
    if (head === null) return;
    const reader = new TokenReader(tokensOf(head[0]));
    reader.expect("insert", "into");
    const place = reader.place();
    this.#addRows(place, { columns: reader.is("(") ? reader.names() : null, start, end, isCopy: false });
  }

  #other(sql: string): void {
    const [, kind = "", place = ""] =
      /^\s*CREATE\s+(?:OR\s+REPLACE\s+)?((?:MATERIALIZED\s+)?\w+)\s+([\w."]+)/i.exec(sql) ?? [];
    this.others.push({ kind: kind.toLowerCase(), place: place.replaceAll('"', ""), sql });
  }

  #named({ schema, name }: Place): PgTable | undefined {
    return this.tables.get(`${schema}.${name}`);
  }

  #table(sql: string, reader: TokenReader): void {
    reader.skip("if", "not", "exists");
    const { schema, name } = reader.place();
    const table: PgTable = {
      schema,
      name,
      columns: [],
      primaryKey: [],
      uniques: [],
      indexes: [],
      foreignKeys: [],
      checks: [],
      isSecured: false,
      policies: [],
      grants: [],
    };
    this.tables.set(`${schema}.${name}`, table);
    if (!reader.is("(")) return;
    for (const part of partsOf(reader.group())) {
      const inner = new TokenReader(part);
      if (
        inner.is("constraint") ||
        inner.is("primary") ||
        inner.is("unique") ||
        inner.is("foreign") ||
        inner.is("check")
      ) {
        this.#constraint(sql, table, inner);
      } else table.columns.push(this.#column(sql, table, inner));
    }
  }

  #column(sql: string, table: PgTable, reader: TokenReader): PgColumn {
    const column: PgColumn = {
      name: reader.name(),
      type: typeOf(reader),
      isNotNull: false,
      default: null,
      isGenerated: false,
      isIdentity: false,
    };
    while (!reader.isAtEnd) {
      if (reader.skip("not", "null")) column.isNotNull = true;
      else if (reader.skip("null")) continue;
      else if (reader.skip("default")) column.default = expressionIn(sql, reader);
      else if (reader.skip("generated")) {
        while (!reader.skip("as")) reader.take();
        if (reader.skip("identity")) column.isIdentity = true;
        else column.isGenerated = true;
        if (reader.is("(")) reader.group();
        reader.skip("stored");
      } else if (reader.skip("collate")) reader.place();
      else if (reader.skip("primary", "key")) {
        table.primaryKey = [column.name];
        column.isNotNull = true;
      } else if (reader.skip("unique")) table.uniques.push([column.name]);
      else if (reader.skip("constraint")) reader.name();
      else if (reader.skip("check")) table.checks.push(sqlOf(sql, reader.group()));
      else throw new NotUnderstood(`the column ${table.name}.${column.name}: ${reader.peek()?.text}`);
    }
    return column;
  }

  #constraint(sql: string, table: PgTable, reader: TokenReader): void {
    if (reader.skip("constraint")) reader.name();
    if (reader.skip("primary", "key")) table.primaryKey = reader.names() ?? [];
    else if (reader.skip("unique")) {
      const names = reader.is("(") ? reader.names() : null;
      if (names !== null) table.uniques.push(names);
    } else if (reader.skip("foreign", "key")) {
      const columns = reader.names() ?? [];
      reader.expect("references");
      const target = reader.place();
      const targetColumns = reader.is("(") ? (reader.names() ?? []) : [];
      let onDelete = "no action";
      while (!reader.isAtEnd && !reader.is(";")) {
        if (reader.skip("on", "delete")) {
          const word = reader.name();
          onDelete = word === "set" || word === "no" ? `${word} ${reader.name()}` : word;
        } else reader.take();
      }
      table.foreignKeys.push({ columns, target, targetColumns, onDelete });
    } else if (reader.skip("check")) table.checks.push(sqlOf(sql, reader.group()));
  }

  #alter(sql: string, reader: TokenReader): void {
    reader.expect("alter", "table");
    reader.skip("if", "exists");
    reader.skip("only");
    const table = this.#named(reader.place());
    if (table === undefined) return;
    if (reader.skip("enable", "row", "level", "security")) table.isSecured = true;
    else if (reader.skip("add")) {
      if (reader.is("constraint")) this.#constraint(sql, table, reader);
    } else if (reader.skip("alter")) {
      reader.skip("column");
      const name = reader.name();
      const column = table.columns.find((one) => one.name === name);
      if (column === undefined) return;
      if (reader.skip("set", "default")) column.default = expressionIn(sql, reader);
      else if (reader.skip("add", "generated")) column.isIdentity = true;
      else if (reader.skip("set", "not", "null")) column.isNotNull = true;
    }
  }

  #type(reader: TokenReader): void {
    const { schema, name } = reader.place();
    if (!reader.skip("as", "enum")) return;
    this.enums.set(
      `${schema}.${name}`,
      reader.group().flatMap(({ kind, text }) => (kind === "text" ? [text] : [])),
    );
  }

  #index(sql: string, reader: TokenReader): void {
    const isUnique = reader.skip("unique");
    reader.expect("index");
    reader.skip("if", "not", "exists");
    if (!reader.is("on")) reader.name();
    reader.expect("on");
    reader.skip("only");
    const place = reader.place();
    const table = this.#named(place);
    if (reader.skip("using") && reader.name() !== "btree")
      return void this.others.push({ kind: "index", place: place.name, sql });
    const fields = reader.names();
    const isWhole = reader.isAtEnd || reader.is(";");
    if (fields === null || !isWhole || fields.some((name) => !table?.columns.some((one) => one.name === name))) {
      this.others.push({ kind: "index", place: `${place.schema}.${place.name}`, sql });
    } else table?.indexes.push({ fields, isUnique });
  }

  #policy(sql: string, reader: TokenReader): void {
    const name = reader.name();
    reader.expect("on");
    const table = this.#named(reader.place());
    const policy: PgPolicy = {
      name,
      isRestrictive: false,
      command: "all",
      roles: ["public"],
      using: null,
      check: null,
    };
    while (!reader.isAtEnd && !reader.skip(";")) {
      if (reader.skip("as")) policy.isRestrictive = reader.name() === "restrictive";
      else if (reader.skip("for")) policy.command = reader.name() as PgPolicy["command"];
      else if (reader.skip("to")) {
        const roles = [reader.name()];
        while (reader.skip(",")) roles.push(reader.name());
        policy.roles = roles;
      } else if (reader.skip("using")) policy.using = sqlOf(sql, reader.group());
      else if (reader.skip("with", "check")) policy.check = sqlOf(sql, reader.group());
      else throw new NotUnderstood(`the policy ${name}`);
    }
    table?.policies.push(policy);
  }

  #grant(reader: TokenReader): void {
    reader.expect("grant");
    const rights: { command: string; columns: string[] | null }[] = [];
    do {
      const command = reader.name();
      reader.skip("privileges");
      rights.push({ command, columns: reader.is("(") ? reader.names() : null });
    } while (reader.skip(","));
    if (!reader.skip("on") || !reader.skip("table")) return;
    const table = this.#named(reader.place());
    reader.expect("to");
    const roles = [reader.name()];
    while (reader.skip(",")) roles.push(reader.name());
    const grants = roles.flatMap((role) => rights.map((right): PgGrant => ({ role, ...right })));
    table?.grants.push(...grants);
  }
}

/** Splits tokens at commas outside of parentheses. */
function partsOf(tokens: readonly Token[]): Token[][] {
  const parts: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token.kind === "sign" && token.text === "(") depth += 1;
    if (token.kind === "sign" && token.text === ")") depth -= 1;
    if (depth === 0 && token.kind === "sign" && token.text === ",") parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts.filter((part) => part.length > 0);
}

const sqlOf = (sql: string, tokens: readonly Token[]): string =>
  sql.slice(tokens[0]?.start ?? 0, tokens.at(-1)?.end ?? 0);

const ENDS_EXPRESSION = new Set(["not", "generated", "constraint", "collate", "primary", "unique", "check"]);

/** Takes the expression of a default. */
function expressionIn(sql: string, reader: TokenReader): string {
  const start = reader.peek()?.start ?? 0;
  let end = start;
  for (let depth = 0; !reader.isAtEnd && !reader.is(";"); ) {
    if (depth === 0 && ENDS_EXPRESSION.has(reader.peek()?.text ?? "") && reader.peek()?.kind === "name") break;
    const token = reader.take();
    if (token.kind === "sign" && token.text === "(") depth += 1;
    if (token.kind === "sign" && token.text === ")") depth -= 1;
    end = token.end;
  }
  return sql.slice(start, end);
}
