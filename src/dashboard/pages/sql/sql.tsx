import "./sql.css";
import { SQLite, sql as sqlLanguage } from "@codemirror/lang-sql";
import { type EditorView, placeholder } from "@codemirror/view";
import { Badge, Button, Group, Kbd, Text } from "@mantine/core";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { sqlStatements } from "../../../client/admin/script.ts";
import { type Resources, useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { CodeEditor } from "../../parts/code/code-editor.tsx";
import { IconHistory, IconPlayerPlay, IconRoute, IconX } from "../../parts/icons.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { HistoryDrawer, SaveButton, useHistory } from "./drawers.tsx";
import { Relations } from "./relations.tsx";
import { Results, WriteBadge } from "./results.tsx";
import { errorMark, type Runs, useRelations, useRuns } from "./statements.ts";
import { type SqlChoice, type SqlTarget, TargetChoice, useTarget } from "./target.tsx";

const SQL_ADDRESS_CHARACTERS_MAX = 4_000;

interface SqlPageState extends SqlChoice {
  /** Statements that ran last. A link only fills the editor: opening it runs nothing. */
  query: string;
}

/** SQL page for the databases of the config's `d1`, and for the tables of its namespaces. */
export default function SqlPage() {
  const resources = useResources();
  const { isRoot } = useRights();
  return (
    <Loadable query={resources}>
      {(declared) =>
        declared.d1.length === 0 && !(isRoot && Object.keys(declared.namespaces).length > 0) ? (
          <Page title="SQL">
            <Empty title="No databases are declared">
              Declare some under <code>d1</code> in platform.config.ts: <code>{"d1: { reports: {} }"}</code>
            </Empty>
          </Page>
        ) : (
          <Chosen resources={declared} />
        )
      }
    </Loadable>
  );
}

function Chosen({ resources }: { resources: Resources }) {
  const { state, change } = usePageState<SqlPageState>();
  const { chosen, target, hasInstances } = useTarget(state, resources);
  return (
    <Page
      title="SQL"
      fills
      actions={
        <TargetChoice
          chosen={chosen}
          hasInstances={hasInstances}
          instance={state.instance}
          resources={resources}
          onChange={(choice) => change({ ...choice, query: undefined })}
        />
      }
    >
      {target === null ? (
        <Empty title="Choose an instance">
          Each instance of this namespace has tables of its own. Type the beginning of an id above.
        </Empty>
      ) : (
        <Statements key={target.key} target={target} />
      )}
    </Page>
  );
}

function Statements({ target }: { target: SqlTarget }) {
  const { state, change } = usePageState<SqlPageState>();
  const [text, setText] = useState(state.query ?? "");
  const [isHistoryOpen, setIsHistoryOpen] = useState(false);
  const view = useRef<EditorView | null>(null);
  const history = useHistory(target.key);
  const language = useLanguage(target);
  const runs = useRuns(target);
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
      <Relations target={target} onInsert={insert} />
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
        <Toolbar text={text} runs={runs} onRun={start}>
          {target.isReadOnly ? (
            <Badge variant="light" color="gray" radius="sm">
              Read-only
            </Badge>
          ) : null}
          <SaveButton text={text} history={history} />
          <Button
            variant="default"
            leftSection={<IconHistory size={16} aria-hidden />}
            onClick={() => setIsHistoryOpen(true)}
          >
            History
          </Button>
        </Toolbar>
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
  children,
}: {
  text: string;
  runs: Runs;
  onRun(isPlan: boolean): void;
  children: ReactNode;
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
      {children}
      {writes === 0 ? null : <WriteBadge>{writes === 1 ? "One write" : `${writes} writes`}</WriteBadge>}
      <Text size="xs" c="dimmed" visibleFrom="sm">
        <Kbd size="xs">Ctrl</Kbd> or <Kbd size="xs">⌘</Kbd> + <Kbd size="xs">Enter</Kbd> runs all, or what is selected
      </Text>
    </Group>
  );
}

/** Returns SQLite's SQL, with completion of existing tables and columns. */
function useLanguage(target: SqlTarget) {
  const { data } = useRelations(target);
  return useMemo(() => {
    const schema = Object.fromEntries(
      (data ?? []).map(({ name, columns }) => [name, columns.map((column) => column.name)]),
    );
    return [sqlLanguage({ dialect: SQLite, schema, upperCaseKeywords: true }), errorMark, placeholder("SELECT …")];
  }, [data]);
}
