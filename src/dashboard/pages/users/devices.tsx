import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { Section } from "../../parts/section.tsx";
import { Loadable } from "../../parts/states.tsx";
import { Ago } from "../../parts/time.tsx";

/** What push messages to the user reach. */
export function Devices({ userId }: { userId: string }) {
  const devices = useQuery({ queryKey: ["users", userId, "devices"], queryFn: () => server.push.devices(userId) });
  return (
    <Section title="Devices">
      <Loadable query={devices} rows={2}>
        {(found) =>
          found.length === 0 ? (
            <Text size="sm" c="dimmed">
              None is registered for push messages.
            </Text>
          ) : (
            <Table verticalSpacing={4} layout="fixed" aria-label="Devices">
              <Table.Tbody>
                {found.map(({ id, platform, token, createdAt }) => (
                  <Table.Tr key={id}>
                    <Table.Td w={90}>{platform}</Table.Td>
                    <Table.Td>
                      <Text size="sm" ff="monospace" truncate title={token}>
                        {token}
                      </Text>
                    </Table.Td>
                    <Table.Td w={130} ta="right">
                      <Ago time={createdAt} />
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )
        }
      </Loadable>
    </Section>
  );
}
