import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { type SqlPlace, type SqlStatement, sqlErrorPlace, sqlStatements } from "../../../client/admin/script.ts";
import type { Sql } from "../../../client/admin/stores.ts";
import { declaredAs, type Resources } from "../../api/resources.ts";
import { messageOf, noteFailure, queries, server } from "../../api/server.ts";
import type { SqlTarget } from "./target.tsx";

/** Bound of the columns of tables and views that completion knows. */
const SQL_COLUMNS_MAX = 5_000;

export type ResultRow = Readonly<Record<string, unknown>>;

/** Outcome of a statement. */
export type Outcome =
  | { kind: "rows"; statement: SqlStatement; rows: readonly ResultRow[]; changes: number; durationMs: number }
  | { kind: "plan"; statement: SqlStatement; rows: readonly ResultRow[] }
  | { kind: "failed"; statement: SqlStatement; error: unknown };

interface Relation {
  name: string;
  kind: "table" | "view";
  columns: readonly { name: string; type: string }[];
}

const RELATIONS = `SELECT m.name AS relation, m.type AS kind, c.name AS name, c.type AS type
FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND m.name <> '_platform_commit'
ORDER BY m.name, c.cid LIMIT ${SQL_COLUMNS_MAX}`;

const relationsKey = ({ key }: SqlTarget): readonly string[] => ["sql", key, "relations"];

/** Column of a table without a schema that has the fields of a record. */
const DOCUMENT: Relation["columns"][number] = { name: "_platform_document", type: "json" };

/** Returns the stored tables of a namespace as the config declares them. */
function declaredRelations({ namespaces }: Resources, namespace: string): Relation[] {
  const tables = Object.entries(declaredAs(namespaces, namespace)?.tables ?? {});
  return tables
    .filter(([, { view }]) => view !== true)
    .map(([name, { fields, schemaless }]) => {
      const columns = Object.entries(fields).map(([field, { type }]) => ({ name: field, type }));
      return { name, kind: "table", columns: schemaless ? [...columns, DOCUMENT] : columns };
    });
}

/** Returns the tables and views of a database, or the tables of a namespace, with their columns. */
export const useRelations = (target: SqlTarget) =>
  useQuery({
    queryKey: relationsKey(target),
    queryFn: async (): Promise<readonly Relation[]> => {
      if (target.namespace !== null) {
        return declaredRelations(await server.request<Resources>("GET", "/api/admin/resources"), target.namespace);
      }
      const { results } = await target.sql.query<{
        relation: string;
        kind: Relation["kind"];
        name: string;
        type: string;
      }>(RELATIONS);
      const relations = Map.groupBy(results, ({ relation }) => relation);
      return Array.from(
        relations,
        ([name, columns]): Relation => ({ name, kind: columns[0]?.kind ?? "table", columns }),
      );
    },
  });

/** Runs statements in sequence up to the first failure, and reports each outcome. */
async function runStatements(
  sql: Sql,
  statements: readonly SqlStatement[],
  options: { isPlan: boolean; signal: AbortSignal; onOutcome(outcome: Outcome): void },
): Promise<void> {
  const { isPlan, signal, onOutcome } = options;
  for (const statement of statements) {
    const isExplained = isPlan && !statement.isExplained;
    try {
      const text = isExplained ? `EXPLAIN QUERY PLAN ${statement.text}` : statement.text;
      const { results: rows, meta } = await sql.query<ResultRow>(text, [], { signal });
      if (isPlan && rows.every((row) => "detail" in row)) onOutcome({ kind: "plan", statement, rows });
      else onOutcome({ kind: "rows", statement, rows, changes: meta.changes, durationMs: meta.duration });
    } catch (error) {
      noteFailure(error);
      onOutcome({ kind: "failed", statement, error });
      return;
    }
  }
}

/** Returns the range of the script that an error message names; the whole statement if it names nothing. */
const placeOf = (script: string, { statement, error }: Outcome & { kind: "failed" }): SqlPlace =>
  sqlErrorPlace(script, statement, messageOf(error)) ?? statement;

const mark = StateEffect.define<SqlPlace | null>();

/** Underlines the range of an error until its text changes. */
export const errorMark = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { changes, effects, docChanged }) {
    const given = effects.find((effect) => effect.is(mark));
    if (given?.is(mark) === true) {
      const { value } = given;
      return value === null
        ? Decoration.none
        : Decoration.set(Decoration.mark({ class: "code-marked" }).range(value.from, value.to));
    }
    return docChanged ? marks.map(changes) : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function showMark(view: EditorView, place: SqlPlace | null): void {
  const isInside = place !== null && place.to <= view.state.doc.length && place.from < place.to;
  view.dispatch({ effects: mark.of(isInside ? place : null) });
}

interface Run {
  /** Number of statements to run. */
  total: number;
  outcomes: readonly Outcome[];
  /** Cancels the run; null: it has ended. */
  cancel: (() => void) | null;
}

const NOTHING: Run = { total: 0, outcomes: [], cancel: null };

/**
 * Returns the last run on a database, and which of its results is shown. Leaving the page cancels it, as nobody would see its
 * outcome.
 */
export function useRuns(target: SqlTarget) {
  const [run, setRun] = useState(NOTHING);
  const [chosen, choose] = useState(0);
  const leave = useRef<Run["cancel"]>(null);
  useEffect(() => () => leave.current?.(), []);

  const start = (editor: EditorView, isPlan: boolean): boolean => {
    const { from, to } = editor.state.selection.main;
    const script = editor.state.doc.toString();
    // A selection runs alone. Padding keeps positions those of the whole text.
    const wanted = sqlStatements(from === to ? script : " ".repeat(from) + script.slice(from, to));
    if (wanted.length === 0 || run.cancel !== null) return false;
    const aborting = new AbortController();
    const outcomes: Outcome[] = [];
    const show = (cancel: Run["cancel"]): void => setRun({ total: wanted.length, outcomes: [...outcomes], cancel });
    const cancel = (): void => aborting.abort(new Error("Cancelled"));
    leave.current = cancel;
    showMark(editor, null);
    choose(0);
    show(cancel);
    const ended = runStatements(target.sql, wanted, {
      isPlan,
      signal: aborting.signal,
      onOutcome(outcome) {
        outcomes.push(outcome);
        choose(outcomes.length - 1);
        if (outcome.kind === "failed") showMark(editor, placeOf(script, outcome));
        show(cancel);
      },
    });
    void ended.then(() => {
      show(null);
      const isWrite = !isPlan && wanted.some(({ kind }) => kind === "write");
      if (isWrite) void queries.invalidateQueries({ queryKey: relationsKey(target) });
    });
    return true;
  };
  return { ...run, chosen, choose, start };
}

export type Runs = ReturnType<typeof useRuns>;
