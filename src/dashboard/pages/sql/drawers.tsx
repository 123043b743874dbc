import { Button, Drawer, Group, NavLink, ScrollArea, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useState } from "react";
import { Ago } from "../../parts/format.tsx";
import { IconEye, IconSearch, IconTable } from "../../parts/icons.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { useRelations } from "./statements.ts";

/** Number of statements remembered per database, and limit of their characters in the history or the address. */
const SQL_HISTORY_MAX = 100;
const SQL_HISTORY_CHARACTERS_MAX = 10_000;

interface Entry {
  text: string;
  at: number;
}

const NOTHING: Entry[] = [];

/** Returns the history of statements run on a database in this browser, latest first. Results are not kept. */
export function useHistory(database: string) {
  const [entries, setEntries] = useLocalStorage<Entry[]>({
    key: `platform.sql-history ${database}`,
    defaultValue: NOTHING,
    getInitialValueInEffect: false,
  });
  return {
    entries,
    clear: () => setEntries([]),
    add(text: string): void {
      if (text.length > SQL_HISTORY_CHARACTERS_MAX) return;
      setEntries((before) =>
        [{ text, at: Date.now() }, ...before.filter((entry) => entry.text !== text)].slice(0, SQL_HISTORY_MAX),
      );
    },
  };
}

type History = ReturnType<typeof useHistory>;

export function HistoryDrawer({
  history,
  onChoose,
  onClose,
}: {
  history: History;
  onChoose(text: string): void;
  onClose(): void;
}) {
  const [q, setQ] = useState("");
  const { entries, clear } = history;
  const found = entries.filter(({ text }) => text.toLowerCase().includes(q.toLowerCase()));
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title="History">
      <Stack gap="sm">
        <Group gap="xs">
          <TextInput
            aria-label="Search"
            placeholder="A part of a statement"
            leftSection={<IconSearch size={16} aria-hidden />}
            flex={1}
            value={q}
            onChange={(event) => setQ(event.currentTarget.value)}
          />
          {entries.length === 0 ? null : (
            <Button variant="default" onClick={clear}>
              Clear
            </Button>
          )}
        </Group>
        {found.length === 0 ? (
          <Empty title={entries.length === 0 ? "Nothing has been run yet" : "No statement has these words"}>
            What is run here is kept in this browser, the last {SQL_HISTORY_MAX} for each database.
          </Empty>
        ) : (
          <Stack gap={4} component="ul" className="sql-history">
            {found.map(({ text, at }) => (
              <li key={text}>
                <UnstyledButton className="sql-history-entry" onClick={() => onChoose(text)}>
                  <Text size="xs" ff="monospace" lineClamp={4} className="sql-text">
                    {text}
                  </Text>
                  <Text size="xs" c="dimmed">
                    <Ago time={at} />
                  </Text>
                </UnstyledButton>
              </li>
            ))}
          </Stack>
        )}
      </Stack>
    </Drawer>
  );
}

const SEARCHED_FROM = 8;

/** Tables and views of a database; each expands to its columns, and a click inserts a name. */
export function Relations({ database, onInsert }: { database: string; onInsert(name: string): void }) {
  const relations = useRelations(database);
  const [q, setQ] = useState("");
  return (
    <section className="sql-relations" aria-label="Tables of the database">
      <Loadable query={relations} rows={4}>
        {(all) =>
          all.length === 0 ? (
            <Text size="sm" c="dimmed" p="xs">
              No tables yet. Make one: <code>CREATE TABLE films (title TEXT)</code>
            </Text>
          ) : (
            <>
              {all.length < SEARCHED_FROM ? null : (
                <TextInput
                  aria-label="Search tables"
                  placeholder="Tables"
                  size="xs"
                  m={6}
                  leftSection={<IconSearch size={14} aria-hidden />}
                  value={q}
                  onChange={(event) => setQ(event.currentTarget.value)}
                />
              )}
              <ScrollArea flex={1} scrollbars="y" type="auto">
                {all
                  .filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()))
                  .map(({ name, kind, columns }) => (
                    <NavLink
                      key={name}
                      component="button"
                      py={5}
                      label={name}
                      title={name}
                      classNames={{ label: "sql-name" }}
                      leftSection={
                        kind === "view" ? <IconEye size={15} aria-hidden /> : <IconTable size={15} aria-hidden />
                      }
                    >
                      {columns.map((column) => (
                        <NavLink
                          key={column.name}
                          component="button"
                          py={2}
                          label={column.name}
                          title={`Insert ${column.name}`}
                          classNames={{ label: "sql-name" }}
                          rightSection={
                            <Text size="xs" c="dimmed" maw={80} truncate>
                              {column.type.toLowerCase()}
                            </Text>
                          }
                          onClick={() => onInsert(column.name)}
                        />
                      ))}
                    </NavLink>
                  ))}
              </ScrollArea>
            </>
          )
        }
      </Loadable>
    </section>
  );
}
