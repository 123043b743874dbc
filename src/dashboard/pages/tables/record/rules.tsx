import { Alert, Badge, Button, Code, Group, JsonInput, Paper, Select, Stack, Table, Text, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import type { TriedRule } from "../../../../client/admin/index.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { messageOf, server } from "../../../api/server.ts";
import { SEARCH_DELAY_MS } from "../../../limits.ts";
import { millisText, numberText } from "../../../parts/format.tsx";
import { parseJson } from "../../../parts/json.tsx";
import { Wide } from "../../../parts/list/list.tsx";
import { usePageState } from "../../../parts/page.tsx";
import { Loadable } from "../../../parts/states.tsx";
import { useViewAs } from "../../../shell/view-as.tsx";
import { keyOf, type TableAddress } from "../address.ts";
import type { RecordState } from "./state.tsx";

const NOBODY = "anonymous";
const NOBODY_NAME = "Nobody (not signed in)";
const FOUND_MAX = 8;

interface FoundUser {
  id: string;
  email: string | null;
}

/** Selects a user by email, name or id, or nobody. */
function Who({ label, value, onChange }: { label: string; value: string; onChange(value: string): void }) {
  const [query, setQuery] = useState("");
  const [words] = useDebouncedValue(query, SEARCH_DELAY_MS);
  const found = useQuery({
    queryKey: ["users", "who", words],
    placeholderData: keepPreviousData,
    queryFn: () =>
      server.request<{ users: FoundUser[] }>("GET", "/api/auth/admin/users", {
        query: { limit: FOUND_MAX, ...(words === "" ? {} : { q: words }) },
      }),
  });
  const chosen = useQuery({
    queryKey: ["users", value, "name"],
    enabled: value !== NOBODY,
    queryFn: () => server.request<FoundUser>("GET", `/api/auth/admin/users/${encodeURIComponent(value)}`),
  });
  const users = new Map((found.data?.users ?? []).map((user) => [user.id, user]));
  if (value !== NOBODY) users.set(value, chosen.data ?? { id: value, email: null });
  const nameOf = ({ id, email }: FoundUser): string => email ?? id;
  const chosenName = value === NOBODY ? NOBODY_NAME : nameOf(users.get(value) ?? { id: value, email: null });
  return (
    <Select
      label={label}
      searchable
      allowDeselect={false}
      data={[
        { value: NOBODY, label: NOBODY_NAME },
        ...[...users.values()].map((user) => ({ value: user.id, label: nameOf(user) })),
      ]}
      // The server has filtered the options, also by fields that are not shown.
      filter={({ options }) => options}
      // The name of the selected user is not a search.
      onSearchChange={(text) => setQuery(text === chosenName ? "" : text)}
      value={value}
      onChange={(next) => onChange(next ?? value)}
    />
  );
}

/** Shows which rules allow or deny operations to a user on this record. Nothing is written. */
export function RuleTester({ address, id }: { address: TableAddress; id: string }) {
  const viewAs = useViewAs();
  const { state, change } = usePageState<RecordState>();
  const as = state.tryAs ?? viewAs ?? NOBODY;
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [data, setData] = useState<JsonObject | undefined>(undefined);
  const { namespace, instance, table } = address;
  const trial = useQuery({
    queryKey: [...keyOf(address), "rules", as, id, data],
    // Rules may evaluate differently at any time.
    staleTime: 0,
    queryFn: () => server.tables.tryRules({ namespace, table, instanceId: instance ?? undefined }, { as, id, data }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const changes = changesOf(text);
    setProblem(typeof changes === "string" ? changes : null);
    if (typeof changes === "string") return;
    setData(changes);
    void trial.refetch();
  };
  return (
    <Stack gap="md">
      <form onSubmit={submit}>
        <Stack gap="xs">
          <Who
            label="Try as"
            value={as}
            onChange={(next) => change({ tryAs: next === (viewAs ?? NOBODY) ? undefined : next }, { replace: true })}
          />
          <JsonInput
            label="Changes of the update"
            description="Such as what a form would send. Nothing is written."
            placeholder='{ "title": "…" }'
            autosize
            minRows={1}
            maxRows={8}
            value={text}
            error={problem}
            onChange={setText}
          />
          <Group>
            <Button type="submit" variant="default" loading={trial.isFetching}>
              Run
            </Button>
          </Group>
        </Stack>
      </form>
      <Loadable query={trial} rows={4}>
        {(results) => (
          <Stack gap="sm">
            {results.map((result) => (
              <Verdict key={result.operation} {...result} />
            ))}
          </Stack>
        )}
      </Loadable>
    </Stack>
  );
}

/** Parses the text into changes, or returns the problem. */
function changesOf(text: string): JsonObject | undefined | string {
  if (text.trim() === "") return undefined;
  try {
    const changes = parseJson(text);
    return isJsonObject(changes) ? changes : "The changes are a JSON object";
  } catch (error) {
    return messageOf(error);
  }
}

const NAMES = { read: "Read", insert: "Insert", update: "Update", delete: "Delete" } as const;

function Verdict({ operation, allowed, status, decidedBy, rule, answer, error, ms, ...looked }: TriedRule) {
  return (
    <Paper withBorder p="sm" component="section" aria-label={NAMES[operation]}>
      <Stack gap={8}>
        <Group justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="xs">
            <Title order={3} size="h6">
              {NAMES[operation]}
            </Title>
            <Badge variant="light" color={allowed ? "green" : "red"}>
              {allowed ? "Allowed" : `Denied, ${status}`}
            </Badge>
          </Group>
          <Text size="xs" c="dimmed" className="number">
            {millisText(ms)}
          </Text>
        </Group>
        <Text size="sm">{reasonOf({ operation, allowed, decidedBy, rule, answer })}</Text>
        {rule === null ? null : <Source text={rule} />}
        {Array.isArray(answer) ? (
          <>
            <Text size="sm">It returns the filter</Text>
            <Source text={JSON.stringify(answer)} />
          </>
        ) : null}
        {error === null ? null : (
          <Alert color="red" variant="light" p="xs">
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              {error}
            </Text>
          </Alert>
        )}
        <Lookups {...looked} />
      </Stack>
    </Paper>
  );
}

function reasonOf({
  operation,
  allowed,
  decidedBy,
  rule,
  answer,
}: Pick<TriedRule, "operation" | "allowed" | "decidedBy" | "rule" | "answer">): string {
  if (rule === null) return `There is no rule for ${decidedBy}, which denies.`;
  const isHidden = !allowed && decidedBy === "read" && operation !== "read";
  if (isHidden) return "The read rule hides the record, so that it does not exist for this user.";
  if (!Array.isArray(answer)) return `The ${decidedBy} rule ${allowed ? "allows" : "denies"} it.`;
  return `The ${decidedBy} rule ${allowed ? "covers" : "does not cover"} the record.`;
}

/** Source code with line wrapping. */
const Source = ({ text }: { text: string }) => (
  <Code block style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }} mah={220} tabIndex={0}>
    {text}
  </Code>
);

function Lookups({ lookups, lookupCount }: Pick<TriedRule, "lookups" | "lookupCount">) {
  if (lookupCount === 0) return null;
  return (
    <Wide minWidth={380}>
      <Table fz="xs" verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Looked up</Table.Th>
            <Table.Th>By</Table.Th>
            <Table.Th ta="right">Found</Table.Th>
            <Table.Th ta="right">Time</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {lookups.map(({ namespace, instanceId, table, method, id, filter, found, ms, error }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the order in which they were made
            <Table.Tr key={index}>
              <Table.Td title={[namespace, ...(instanceId === null ? [] : [instanceId]), table].join(" / ")}>
                {table}
              </Table.Td>
              <Table.Td ff="monospace" style={{ overflowWrap: "anywhere" }}>
                {id === null ? `${method} ${filter ?? ""}` : `get ${id}`}
              </Table.Td>
              <Table.Td ta="right" className="number">
                {error === null ? (found === 0 ? "nothing" : numberText(found)) : "failed"}
              </Table.Td>
              <Table.Td ta="right" className="number">
                {millisText(ms)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {lookupCount > lookups.length ? (
        <Text size="xs" c="dimmed">
          The first {numberText(lookups.length)} of {numberText(lookupCount)} lookups
        </Text>
      ) : null}
    </Wide>
  );
}
