import "./sql.css";
import { SQLite, sql as sqlLanguage } from "@codemirror/lang-sql";
import { type EditorView, placeholder } from "@codemirror/view";
import { Button, Group, Kbd, Select, Text } from "@mantine/core";
import { useMemo, useRef, useState } from "react";
import { sqlStatements } from "../../../client/admin/script.ts";
import { useResources } from "../../api/resources.ts";
import { CodeEditor } from "../../parts/code/code-editor.tsx";
import { IconHistory, IconPlayerPlay, IconRoute, IconX } from "../../parts/icons.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { HistoryDrawer, Relations, useHistory } from "./drawers.tsx";
import { Results, WriteBadge } from "./results.tsx";
import { errorMark, type Runs, useRelations, useRuns } from "./statements.ts";

const SQL_ADDRESS_CHARACTERS_MAX = 4_000;

interface SqlPageState {
  database: string;
  /** Statements that ran last. A link only fills the editor: opening it runs nothing. */
  query: string;
}

/** SQL page for the databases of the config's `d1`. */
export default function SqlPage() {
  const resources = useResources();
  const { state, change } = usePageState<SqlPageState>();
  return (
    <Loadable query={resources}>
      {({ d1 }) => {
        const [first] = d1;
        if (first === undefined) {
          return (
            <Page title="SQL">
              <Empty title="No databases are declared">
                Declare some under <code>d1</code> in platform.config.ts: <code>{"d1: { reports: {} }"}</code>
              </Empty>
            </Page>
          );
        }
        const database = state.database ?? first;
        return (
          <Page
            title="SQL"
            fills
            actions={
              <Select
                aria-label="Database"
                data={d1.includes(database) ? [...d1] : [...d1, database]}
                value={database}
                allowDeselect={false}
                onChange={(next) => change({ database: next ?? database, query: undefined })}
              />
            }
          >
            <Database key={database} name={database} />
          </Page>
        );
      }}
    </Loadable>
  );
}

function Database({ name }: { name: string }) {
  const { state, change } = usePageState<SqlPageState>();
  const [text, setText] = useState(state.query ?? "");
  const [isHistoryOpen, setIsHistoryOpen] = useState(false);
  const view = useRef<EditorView | null>(null);
  const history = useHistory(name);
  const language = useLanguage(name);
  const runs = useRuns(name);
  const start = (isPlan: boolean): void => {
    const editor = view.current;
    if (editor === null) return;
    const script = editor.state.doc.toString();
    if (!runs.start(editor, isPlan)) return;
    change({ query: script.length > SQL_ADDRESS_CHARACTERS_MAX ? undefined : script }, { replace: true });
    history.add(script);
  };
  const insert = (word: string): void => {
    const editor = view.current;
    if (editor === null) return;
    const quoted = /^[A-Za-z_]\w*$/.test(word) ? word : `"${word.replaceAll('"', '""')}"`;
    editor.dispatch(editor.state.replaceSelection(quoted));
    editor.focus();
  };
  return (
    <div className="sql-page">
      <Relations database={name} onInsert={insert} />
      <div className="sql-main">
        <CodeEditor
          label="Statements"
          value={text}
          onChange={setText}
          extensions={language}
          onSubmit={() => start(false)}
          onView={(editor) => {
            view.current = editor;
          }}
        />
        <Toolbar text={text} runs={runs} onRun={start} onHistory={() => setIsHistoryOpen(true)} />
        <Results runs={runs} />
      </div>
      {isHistoryOpen ? (
        <HistoryDrawer
          history={history}
          onClose={() => setIsHistoryOpen(false)}
          onChoose={(next) => {
            setText(next);
            setIsHistoryOpen(false);
          }}
        />
      ) : null}
    </div>
  );
}

function Toolbar({
  text,
  runs,
  onRun,
  onHistory,
}: {
  text: string;
  runs: Runs;
  onRun(isPlan: boolean): void;
  onHistory(): void;
}) {
  const statements = useMemo(() => sqlStatements(text), [text]);
  const writes = statements.filter(({ kind }) => kind === "write").length;
  const { cancel } = runs;
  return (
    <Group gap="xs">
      {cancel === null ? (
        <Button
          leftSection={<IconPlayerPlay size={16} aria-hidden />}
          disabled={statements.length === 0}
          onClick={() => onRun(false)}
        >
          Run
        </Button>
      ) : (
        <Button color="red" leftSection={<IconX size={16} aria-hidden />} onClick={cancel}>
          Cancel
        </Button>
      )}
      <Button
        variant="default"
        leftSection={<IconRoute size={16} aria-hidden />}
        disabled={statements.length === 0 || cancel !== null}
        onClick={() => onRun(true)}
      >
        Plan
      </Button>
      <Button variant="default" leftSection={<IconHistory size={16} aria-hidden />} onClick={onHistory}>
        History
      </Button>
      {writes === 0 ? null : <WriteBadge>{writes === 1 ? "One write" : `${writes} writes`}</WriteBadge>}
      <Text size="xs" c="dimmed" visibleFrom="sm">
        <Kbd size="xs">Ctrl</Kbd> or <Kbd size="xs">⌘</Kbd> + <Kbd size="xs">Enter</Kbd> runs all, or what is selected
      </Text>
    </Group>
  );
}

/** Returns SQLite's SQL, with completion of existing tables and columns. */
function useLanguage(database: string) {
  const { data } = useRelations(database);
  return useMemo(() => {
    const schema = Object.fromEntries(
      (data ?? []).map(({ name, columns }) => [name, columns.map((column) => column.name)]),
    );
    return [sqlLanguage({ dialect: SQLite, schema, upperCaseKeywords: true }), errorMark, placeholder("SELECT …")];
  }, [data]);
}
