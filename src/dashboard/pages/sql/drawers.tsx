import { Button, Drawer, Group, Modal, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useState } from "react";
import { Ago } from "../../parts/format.tsx";
import { IconSearch } from "../../parts/icons.tsx";
import { Empty } from "../../parts/states.tsx";

/** Number of statements remembered per database, saved ones apart, and limit of their characters there or in the address. */
const SQL_HISTORY_MAX = 100;
const SQL_SAVED_MAX = 100;
const SQL_HISTORY_CHARACTERS_MAX = 10_000;
const SQL_NAME_CHARACTERS_MAX = 80;

interface Entry {
  text: string;
  at: number;
  /** Name of a saved one. */
  name?: string;
}

const NOTHING: Entry[] = [];

function useEntries(key: string): [Entry[], (change: (before: Entry[]) => Entry[]) => void] {
  const [entries, setEntries] = useLocalStorage<Entry[]>({
    key,
    defaultValue: NOTHING,
    getInitialValueInEffect: false,
  });
  return [entries, setEntries];
}

/** Returns the statements run on a database in this browser, latest first, and the saved ones, by name. Results are not kept. */
export function useHistory(database: string) {
  const [entries, setEntries] = useEntries(`platform.sql-history ${database}`);
  const [saved, setSaved] = useEntries(`platform.sql-saved ${database}`);
  return {
    entries,
    saved,
    clear: () => setEntries(() => []),
    add(text: string): void {
      if (text.length > SQL_HISTORY_CHARACTERS_MAX) return;
      setEntries((before) =>
        [{ text, at: Date.now() }, ...before.filter((entry) => entry.text !== text)].slice(0, SQL_HISTORY_MAX),
      );
    },
    /** Whether there is no place for a further name. */
    isFull: (name: string): boolean => saved.length >= SQL_SAVED_MAX && saved.every((entry) => entry.name !== name),
    /** Saves a text under a name, in place of the one of that name. */
    save(name: string, text: string): void {
      setSaved((before) =>
        [...before.filter((entry) => entry.name !== name), { name, text, at: Date.now() }].toSorted((one, other) =>
          (one.name ?? "").localeCompare(other.name ?? ""),
        ),
      );
    },
    remove: (name: string) => setSaved((before) => before.filter((entry) => entry.name !== name)),
  };
}

type History = ReturnType<typeof useHistory>;

/** Button that saves the statements of the editor under a name. */
export function SaveButton({ text, history }: { text: string; history: History }) {
  const [name, setName] = useState<string | null>(null);
  const close = (): void => setName(null);
  const isTooLong = text.length > SQL_HISTORY_CHARACTERS_MAX;
  const given = (name ?? "").trim();
  const isFull = given !== "" && history.isFull(given);
  return (
    <>
      <Button
        variant="default"
        disabled={text.trim() === "" || isTooLong}
        title={isTooLong ? "Too long to be saved here" : undefined}
        onClick={() => setName("")}
      >
        Save
      </Button>
      <Modal opened={name !== null} onClose={close} title="Save this query in this browser">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            history.save(given, text);
            close();
          }}
        >
          <TextInput
            label="Name"
            data-autofocus
            required
            maxLength={SQL_NAME_CHARACTERS_MAX}
            value={name ?? ""}
            error={isFull ? `${SQL_SAVED_MAX} queries are saved: delete one first` : undefined}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Group gap="xs" mt="md">
            <Button type="submit" disabled={given === "" || isFull}>
              Save
            </Button>
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
          </Group>
        </form>
      </Modal>
    </>
  );
}

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
  const { entries, saved, clear, remove } = history;
  const found = (all: readonly Entry[]): readonly Entry[] =>
    all.filter(({ text, name = "" }) => `${name} ${text}`.toLowerCase().includes(q.toLowerCase()));
  const [foundSaved, foundRun] = [found(saved), found(entries)];
  const isEmpty = foundSaved.length + foundRun.length === 0;
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title="History">
      <Stack gap="sm">
        <Group gap="xs">
          <TextInput
            aria-label="Search"
            placeholder="A name, or a part of a statement"
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
        {isEmpty ? (
          <Empty
            title={entries.length + saved.length === 0 ? "Nothing has been run yet" : "No statement has these words"}
          >
            What is run here is kept in this browser, the last {SQL_HISTORY_MAX} for each database, and what you save.
          </Empty>
        ) : null}
        <Entries title="Saved" entries={foundSaved} onChoose={onChoose} onRemove={remove} />
        <Entries title="Run before" entries={foundRun} onChoose={onChoose} />
      </Stack>
    </Drawer>
  );
}

function Entries({
  title,
  entries,
  onChoose,
  onRemove,
}: {
  title: string;
  entries: readonly Entry[];
  onChoose(text: string): void;
  onRemove?(name: string): void;
}) {
  if (entries.length === 0) return null;
  return (
    <section aria-label={title}>
      <Text size="sm" fw={600} mb={4}>
        {title}
      </Text>
      <Stack gap={4} component="ul" className="sql-history">
        {entries.map(({ text, at, name }) => (
          <Group key={name ?? text} component="li" gap={4} wrap="nowrap">
            <UnstyledButton className="sql-history-entry" onClick={() => onChoose(text)}>
              {name === undefined ? null : (
                <Text size="sm" fw={600} className="sql-text" dir="auto">
                  {name}
                </Text>
              )}
              <Text size="xs" ff="monospace" lineClamp={4} className="sql-text">
                {text}
              </Text>
              <Text size="xs" c="dimmed">
                <Ago time={at} />
              </Text>
            </UnstyledButton>
            {name === undefined || onRemove === undefined ? null : (
              <Button
                size="compact-xs"
                variant="subtle"
                flex="none"
                aria-label={`Delete ${name}`}
                onClick={() => onRemove(name)}
              >
                Delete
              </Button>
            )}
          </Group>
        ))}
      </Stack>
    </section>
  );
}
