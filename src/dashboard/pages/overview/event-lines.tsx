import { Box, Group, Text } from "@mantine/core";
import { Ago } from "../../parts/time.tsx";

interface EventLine {
  key: string;
  name: string;
  detail: string;
  /** Null: unknown. */
  at: string | null;
}

/** What has happened, one line each with its time, and a second one with the detail. */
export function EventLines({ lines }: { lines: readonly EventLine[] }) {
  if (lines.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None.
      </Text>
    );
  }
  return (
    <ul className="plain-list lines">
      {lines.map(({ key, name, detail, at }) => (
        <Box component="li" key={key} py={4}>
          <Group justify="space-between" wrap="nowrap" gap="xs">
            <Text size="sm" truncate>
              {name}
            </Text>
            <Text size="sm" c="dimmed" component="div">
              <Ago time={at} />
            </Text>
          </Group>
          <Text size="xs" c="dimmed" truncate title={detail}>
            {detail}
          </Text>
        </Box>
      ))}
    </ul>
  );
}
