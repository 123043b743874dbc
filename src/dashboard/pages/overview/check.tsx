import { Card, Group, Table, Title } from "@mantine/core";
import { agoText, bytesText, numberText } from "../../parts/format.ts";
import { IconAlertTriangle, IconCircleCheck } from "../../parts/icons.tsx";

/** One check of the server, with its figures. */
export function Check({
  name,
  isFine,
  facts,
}: {
  name: string;
  isFine: boolean;
  facts: Readonly<Record<string, unknown>>;
}) {
  const Icon = isFine ? IconCircleCheck : IconAlertTriangle;
  return (
    <Card withBorder component="section" aria-label={name} p="sm">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h5" tt="capitalize">
          {name}
        </Title>
        <Icon
          size={20}
          color={isFine ? "var(--mantine-color-green-7)" : "var(--mantine-color-red-7)"}
          aria-label={isFine ? "well" : "not well"}
        />
      </Group>
      <Table withRowBorders={false} verticalSpacing={2} horizontalSpacing={0}>
        <Table.Tbody>
          {Object.entries(facts).map(([fact, value]) => (
            <Table.Tr key={fact}>
              <Table.Td c="dimmed">{wordsOf(fact)}</Table.Td>
              <Table.Td ta="right" className="number">
                {factText(fact, value)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}

/** Names of a check's figures in plain words. */
const WORDS: Readonly<Record<string, string>> = {
  walBytes: "not yet merged",
  inPlace: "where it belongs",
};

/** `freeBytes` is "free", `lastMs` is "last took". */
const wordsOf = (name: string): string =>
  WORDS[name] ??
  name
    .replace(/(?<=.)(?:Bytes|At)$/, "")
    .replace(/Ms$/, "Took")
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function factText(name: string, value: unknown): string {
  if (value === null || value === undefined) return "never";
  if (typeof value === "number") {
    if (/bytes$/i.test(name)) return bytesText(value);
    return name.endsWith("Ms") ? `${numberText(value)} ms` : numberText(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" && /(?:At|Until)$/.test(name) ? agoText(value) : String(value);
}
