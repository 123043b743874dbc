import { Anchor, Badge, Code, Drawer, Group, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { PushDevice } from "../../../client/admin/push.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { timeText } from "../../parts/format.tsx";
import { MetadataForm } from "../../parts/json.tsx";
import { Name, PageLink } from "../../parts/name.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { SendButton } from "./devices.tsx";
import type { Change } from "./state.tsx";

/** Device with its topics and metadata. */
export function OpenDevice({ token, change }: { token: string; change: Change }) {
  const device = useQuery({
    queryKey: ["push", "device", token],
    queryFn: async () => (await server.push.listDevices({ token })).items[0] ?? null,
  });
  return (
    <Drawer
      opened
      onClose={() => change({ device: undefined })}
      position="right"
      size="lg"
      title="Device"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loadable query={device}>
        {(found) =>
          found === null ? (
            <Empty title="There is no such device">It may have registered with another token meanwhile.</Empty>
          ) : (
            <Details device={found} change={change} key={token} />
          )
        }
      </Loadable>
    </Drawer>
  );
}

function Details({ device, change }: { device: PushDevice; change: Change }) {
  const { may } = useRights();
  const { id, userId, token, platform, topics, createdAt, registeredAt } = device;
  const facts: readonly (readonly [string, React.ReactNode])[] = [
    ["Device", <Name key="id">{id}</Name>],
    [
      "User",
      may("auth", "admin", "*", "read") ? (
        <Anchor key="user" component={Link} to={`/users/${encodeURIComponent(userId)}`} size="sm">
          {userId}
        </Anchor>
      ) : (
        userId
      ),
    ],
    ["Platform", platform],
    ["First seen", timeText(createdAt)],
    ["Registered", timeText(registeredAt)],
  ];
  return (
    <Stack gap="md">
      <Table variant="vertical" layout="fixed">
        <Table.Tbody>
          {facts.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th w={110}>{name}</Table.Th>
              <Table.Td className="breaking">{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Stack gap={4}>
        <Text size="sm" fw={600}>
          Token
        </Text>
        <Code block className="breaking" mah={140} tabIndex={0}>
          {token}
        </Code>
      </Stack>
      <Group gap={6}>
        {topics.length === 0 ? (
          <Text size="sm" c="dimmed">
            No topics.
          </Text>
        ) : null}
        {topics.map((topic) => (
          <PageLink key={topic} change={{ view: undefined, topic, device: undefined }}>
            <Badge variant="light" tt="none">
              {topic}
            </Badge>
          </PageLink>
        ))}
      </Group>
      {may("push", "*", "*", "send") ? (
        <Group gap="xs">
          <SendButton
            to={`token:${platform}:${token}`}
            change={(next) => change({ ...next, device: undefined })}
            label="Send to this device"
          />
          <SendButton
            to={`user:${userId}`}
            change={(next) => change({ ...next, device: undefined })}
            label="Send to the user"
          />
        </Group>
      ) : null}
      <DeviceMetadata device={device} isWritable={may("push", "*", "*", "write")} />
    </Stack>
  );
}

function DeviceMetadata({ device, isWritable }: { device: PushDevice; isWritable: boolean }) {
  const { userId, id, token } = device;
  const save = async (changed: (present: JsonObject) => JsonObject): Promise<void> => {
    const [present] = (await server.push.listDevices({ token })).items;
    await server.push.setMetadata(userId, id, changed(present?.metadata ?? {}));
  };
  return <MetadataForm stored={device.metadata} save={save} queryKey={["push"]} isWritable={isWritable} />;
}
