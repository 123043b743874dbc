import { Badge, Button, Group, Select, Text, TextInput } from "@mantine/core";
import type { PushDevice } from "../../../client/admin/push.ts";
import { server } from "../../api/server.ts";
import { Ago } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Name, PageLink } from "../../parts/name.tsx";
import { Empty } from "../../parts/states.tsx";
import { type Change, PLATFORMS, type PushState, UserSelect } from "./state.tsx";

const TOPICS_SHOWN = 2;

/** Devices that receive messages, filtered by user, platform, topic or token. */
export function Devices({ state, change }: { state: Partial<PushState>; change: Change }) {
  const { user, token, platform, topic } = state;
  const wanted = {
    ...(user === undefined ? {} : { userId: user }),
    ...(token === undefined ? {} : { token }),
    ...(platform === undefined ? {} : { platform }),
    ...(topic === undefined ? {} : { topic }),
  };
  const list = usePaged({
    queryKey: ["push", "devices", wanted],
    load: (cursor) => server.push.listDevices({ ...wanted, cursor }),
  });
  const isNarrowed = Object.keys(wanted).length > 0;
  return (
    <>
      <Group gap="xs">
        <UserSelect
          label="User"
          isLabelHidden
          user={user ?? ""}
          onChange={(next) => change({ user: next || undefined })}
        />
        <Select
          aria-label="Platform"
          placeholder="Every platform"
          clearable
          clearButtonProps={{ "aria-label": "Clear platform" }}
          data={[...PLATFORMS]}
          value={platform ?? null}
          onChange={(next) => change({ platform: PLATFORMS.find((one) => one === next) })}
          w={160}
        />
        <TextInput
          aria-label="Topic"
          placeholder="Topic"
          defaultValue={topic ?? ""}
          key={topic}
          w={150}
          onBlur={(event) => change({ topic: event.currentTarget.value || undefined })}
          onKeyDown={(event) => {
            if (event.key === "Enter") change({ topic: event.currentTarget.value || undefined });
          }}
        />
        <TextInput
          aria-label="Token"
          placeholder="Token"
          w={150}
          value={token ?? ""}
          onChange={(event) => change({ token: event.currentTarget.value || undefined }, { replace: true })}
        />
      </Group>
      <Paged
        list={list}
        empty={
          isNarrowed ? (
            <Empty title="No device is like this">Change what the list is narrowed by.</Empty>
          ) : (
            <Empty title="No devices yet">
              Apps register theirs with <code>client.push.register</code>, for the user who is signed in.
            </Empty>
          )
        }
      >
        {(devices) => (
          <DataTable
            label="Devices"
            minWidth={700}
            highlightOnHover
            layout="fixed"
            items={devices}
            keyOf={({ token: key }) => key}
            columns={[
              {
                title: "Device",
                show: ({ id, token: opened }) => (
                  <PageLink change={{ device: opened }} className="name-link">
                    <Name>{id}</Name>
                  </PageLink>
                ),
              },
              {
                title: "User",
                show: ({ userId }) => (
                  <Text size="sm" ff="monospace" truncate title={userId}>
                    {userId}
                  </Text>
                ),
              },
              { title: "Platform", width: 100, show: (device) => device.platform },
              { title: "Topics", show: ({ topics }) => <Topics topics={topics} /> },
              { title: "Registered", width: 150, show: ({ registeredAt }) => <Ago time={registeredAt} /> },
            ]}
          />
        )}
      </Paged>
    </>
  );
}

function Topics({ topics }: Pick<PushDevice, "topics">) {
  const others = topics.length - TOPICS_SHOWN;
  return (
    <Group gap={4} wrap="nowrap">
      {topics.slice(0, TOPICS_SHOWN).map((topic) => (
        <Badge key={topic} variant="light" tt="none" className="topic">
          {topic}
        </Badge>
      ))}
      {others > 0 ? (
        <Text size="xs" c="dimmed" flex="none">
          and {others} more
        </Text>
      ) : null}
    </Group>
  );
}

/** Button that opens a test message. */
export const SendButton = ({ to, change, label = "Send" }: { to: string; change: Change; label?: string }) => (
  <Button size="compact-sm" variant="default" onClick={() => change({ to })}>
    {label}
  </Button>
);
