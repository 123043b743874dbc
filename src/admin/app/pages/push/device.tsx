import { Alert, Anchor, Badge, Button, Code, Drawer, Group, JsonInput, Stack, Table, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { SyntheticEvent } from "react";
import type { PushDevice } from "../../../../client/admin/types.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { messageOf } from "../../api/failure.ts";
import { queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { timeText } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { useObjectDraft } from "../../parts/object-draft.ts";
import { PageLink } from "../../parts/page-link.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { SendButton } from "./devices.tsx";
import type { Change } from "./state.ts";

/** One device, with its topics and metadata. */
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
  const draft = useObjectDraft(device.metadata);
  const save = useMutation({
    async mutationFn(edited: JsonObject) {
      const [present] = (await server.push.listDevices({ token })).items;
      await server.push.setMetadata(userId, id, draft.appliedTo(present?.metadata ?? {}, edited));
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["push"] }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const edited = draft.read();
    if (edited !== null) save.mutate(edited, { onSuccess: draft.saved });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        <JsonInput
          label="Metadata"
          validationError="This is no JSON"
          autosize
          minRows={3}
          maxRows={12}
          value={draft.text}
          onChange={draft.edit}
          readOnly={!isWritable}
          error={draft.problem}
        />
        {save.error === null ? null : (
          <Alert color="red" role="alert">
            {messageOf(save.error)}
          </Alert>
        )}
        {isWritable && draft.isEdited ? (
          <Group gap="xs">
            <Button size="xs" type="submit" loading={save.isPending}>
              Save
            </Button>
            <Button size="xs" variant="default" onClick={draft.drop}>
              Cancel
            </Button>
          </Group>
        ) : null}
      </Stack>
    </form>
  );
}
