import { Button, Drawer, Group, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useState } from "react";
import { SQL_HISTORY_CHARACTERS_MAX, SQL_HISTORY_MAX } from "../../limits.ts";
import { IconSearch } from "../../parts/icons.tsx";
import { Empty } from "../../parts/states.tsx";
import { Ago } from "../../parts/time.tsx";

interface Entry {
  text: string;
  at: number;
}

const NOTHING: Entry[] = [];

/** What was run on a database in this browser, the last first. Statements only, no results. */
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

export type History = ReturnType<typeof useHistory>;

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
