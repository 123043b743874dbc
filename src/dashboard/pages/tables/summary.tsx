import { CloseButton, Group, Loader, Paper, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { TableSchema } from "../../api/resources.ts";
import { messageOf } from "../../api/server.ts";
import { numberText, timeText } from "../../parts/format.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "./address.ts";
import { type Conditions, parametersOf } from "./filter-model.ts";
import { listKey } from "./rows.ts";

const NUMBERS = ["sum", "avg", "min", "max"] as const;
const OTHERS = ["min", "max"] as const;
const NAMES = { sum: "Sum", avg: "Average", min: "Least", max: "Greatest" } as const;

/** Count, sum, average, minimum and maximum of a column, over the filtered records. */
export function Summary({
  address,
  schema,
  column,
  conditions,
  isSearch,
  onClose,
}: {
  address: TableAddress;
  schema: TableSchema;
  column: string;
  conditions: Conditions;
  /** Whether a search narrows the list, which the summary ignores. */
  isSearch: boolean;
  onClose(): void;
}) {
  const server = useServer();
  const as = useViewAs();
  const type = schema.fields[column]?.type;
  const functions = type === "integer" || type === "number" ? NUMBERS : OTHERS;
  const found = useQuery({
    // Changes of the rows invalidate the summary as well.
    queryKey: [...listKey(address), "summary", as, column, conditions],
    queryFn: async ({ signal }) => {
      const select = ["count()", ...functions.map((name) => `${name}(${column})`)].join();
      const query = { select, ...parametersOf(conditions) };
      type Groups = { groups: Record<string, unknown>[] };
      return (await server.request<Groups>("GET", `${pathOf(address)}/aggregate`, { query, signal })).groups[0] ?? {};
    },
  });
  const shown = (value: unknown): string => {
    if (value === null || value === undefined) return "–";
    if (typeof value === "number") return numberText(value);
    return type === "datetime" ? timeText(String(value)) : String(value);
  };
  return (
    <Paper withBorder px="sm" py={6} component="section" aria-label={`Summary of ${column}`}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Group gap="lg" style={{ rowGap: 4 }} aria-live="polite" miw={0}>
          <Text size="sm" fw={600} maw={220} truncate title={column}>
            {column}
          </Text>
          {found.data === undefined ? (
            found.error === null ? (
              <Loader size={16} />
            ) : (
              <Text size="sm" c="var(--mantine-color-error)">
                {messageOf(found.error)}
              </Text>
            )
          ) : (
            <>
              <Value name="Count" value={shown(found.data["count()"])} />
              {functions.map((name) => (
                <Value key={name} name={NAMES[name]} value={shown(found.data[`${name}(${column})`])} />
              ))}
            </>
          )}
          {isSearch ? (
            <Text size="xs" c="dimmed">
              of the filter, without the search
            </Text>
          ) : null}
        </Group>
        <CloseButton size="sm" aria-label="Close the summary" onClick={onClose} />
      </Group>
    </Paper>
  );
}

const Value = ({ name, value }: { name: string; value: string }) => (
  <Group gap={6} wrap="nowrap" miw={0}>
    <Text size="xs" c="dimmed">
      {name}
    </Text>
    <Text size="sm" className="number" maw={240} truncate title={value}>
      {value}
    </Text>
  </Group>
);
