import { Alert, Badge, Group, Paper, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { RoomState } from "../../../client/admin/live.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { ROOMS_EVERY_MS } from "../../limits.ts";
import { JsonTree } from "../../parts/code/json-tree.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { bytesText, numberText, timeText } from "../../parts/format.tsx";
import { Page, usePathParameters } from "../../parts/page.tsx";
import { Failure, Loadable } from "../../parts/states.tsx";
import { Players } from "./players.tsx";

const STATUS: Readonly<Record<RoomState["status"], { color: string; hint: string }>> = {
  live: { color: "green", hint: "In memory" },
  hibernating: { color: "yellow", hint: "With players, and not in memory: as it was saved last" },
  saved: { color: "gray", hint: "Nobody is in it: as it was saved last" },
};

/** One room, polled: its players, states and timers. */
export default function RoomPage() {
  const { namespace, id } = usePathParameters<"namespace" | "id">();
  const { may } = useRights();
  const queryKey = ["rooms", "one", namespace, id];
  const room = useQuery({
    queryKey,
    refetchInterval: ROOMS_EVERY_MS,
    queryFn: () => server.rooms.get(namespace, id),
  });
  const changed = (): void => void queries.invalidateQueries({ queryKey });
  const close = useMutation({
    mutationFn: () => server.rooms.close(namespace, id),
    onSuccess: changed,
    onError: (error) => notifications.show({ color: "red", title: "Not closed", message: messageOf(error) }),
  });
  const kick = useMutation({
    mutationFn: (userId: string) => server.rooms.kick(namespace, id, userId),
    onSuccess: changed,
    onError: (error) => notifications.show({ color: "red", title: "Not kicked", message: messageOf(error) }),
  });
  const mayChange = may("rooms", "*", namespace, "write");
  const isLive = room.data !== undefined && room.data.status !== "saved";
  return (
    <Page
      title={id}
      hint={room.data === undefined ? namespace : <Facts room={room.data} />}
      actions={
        mayChange && isLive ? (
          <Confirm
            action="Close"
            question="Everybody is kicked, and the room is saved. It begins again where it was when somebody joins."
            onConfirm={() => close.mutate()}
          />
        ) : null
      }
    >
      {room.data !== undefined && room.error !== null ? <Failure error={room.error} /> : null}
      <Loadable query={room}>
        {(shown) => <Room room={shown} onKick={mayChange ? (userId) => kick.mutate(userId) : null} />}
      </Loadable>
    </Page>
  );
}

function Facts({ room: { namespace, status, stateBytes, playerCount } }: { room: RoomState }) {
  const { color, hint } = STATUS[status];
  return (
    <Group gap="xs" component="span">
      <Badge color={color} variant="light" title={hint}>
        {status}
      </Badge>
      <span>{namespace}</span>
      <span className="number">{playerCount === 1 ? "one player" : `${numberText(playerCount)} players`}</span>
      {stateBytes === null ? null : <span className="number">{bytesText(stateBytes)} of state</span>}
    </Group>
  );
}

function Room({ room, onKick }: { room: RoomState; onKick: ((userId: string) => void) | null }) {
  const { sharedState, serverState, metadata, timers, isTruncated, sharedVersion } = room;
  return (
    <>
      {isTruncated ? (
        <Alert variant="light" color="yellow">
          The states have more than 256 KiB: what does not fit is left out.
        </Alert>
      ) : null}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Panel title="Shared state" note={`version ${numberText(sharedVersion)}`}>
          <State label="Shared state" value={sharedState} />
        </Panel>
        <Stack gap="md">
          <Panel title="Players" note={numberText(room.playerCount)}>
            <Players room={room} onKick={onKick} />
          </Panel>
          <Panel title="Metadata" note="public">
            <State label="Metadata" value={metadata} />
          </Panel>
          <Panel title="Server state" note="never sent to clients">
            <State label="Server state" value={serverState} />
          </Panel>
          {timers.length === 0 ? null : (
            <Panel title="Timers">
              {timers.map(({ name, dueAt }) => (
                <Text size="sm" key={name}>
                  <Text span ff="monospace">
                    {name}
                  </Text>{" "}
                  at <time dateTime={dueAt}>{timeText(dueAt)}</time>
                </Text>
              ))}
            </Panel>
          )}
        </Stack>
      </SimpleGrid>
    </>
  );
}

function State({ label, value }: { label: string; value: object | null }) {
  if (value !== null) return <JsonTree label={label} value={value} />;
  return (
    <Text size="sm" c="dimmed">
      Too large to be shown while the room is not in memory.
    </Text>
  );
}

function Panel({ title, note, children }: { title: string; note?: string; children: ReactNode }) {
  return (
    <Paper withBorder p="sm" component="section" aria-label={title} miw={0}>
      <Group justify="space-between" gap="xs" mb={6}>
        <Title order={2} size="h6">
          {title}
        </Title>
        <Text size="xs" c="dimmed" className="number">
          {note}
        </Text>
      </Group>
      {children}
    </Paper>
  );
}
