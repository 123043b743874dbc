import type { EditorView } from "@codemirror/view";
import { useEffect, useRef, useState } from "react";
import { sqlStatements } from "../../../client/admin/script.ts";
import { queries, server } from "../../api/server.ts";
import { type Outcome, placeOf, relationsKey, runStatements, showMark } from "./statements.ts";

interface Run {
  /** Statements that were to run. */
  total: number;
  outcomes: readonly Outcome[];
  /** Ends it; null: it has ended. */
  cancel: (() => void) | null;
}

const NOTHING: Run = { total: 0, outcomes: [], cancel: null };

/**
 * What was run last on a database, and which of its results is shown. Whoever leaves the page cancels what runs, as nobody would
 * see what becomes of it.
 */
export function useRuns(database: string) {
  const [run, setRun] = useState(NOTHING);
  const [chosen, choose] = useState(0);
  const leave = useRef<Run["cancel"]>(null);
  useEffect(() => () => leave.current?.(), []);

  const start = (editor: EditorView, isPlan: boolean): boolean => {
    const { from, to } = editor.state.selection.main;
    const script = editor.state.doc.toString();
    // What is selected runs alone. Places are those of the whole text.
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
    const ended = runStatements(server.sql(database), wanted, {
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
      if (isWrite) void queries.invalidateQueries({ queryKey: relationsKey(database) });
    });
    return true;
  };
  return { ...run, chosen, choose, start };
}

export type Runs = ReturnType<typeof useRuns>;
