import { Anchor, Badge, Group, Select, Text, TextInput } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RoomEntry } from "../../../client/admin/live.ts";
import { useResources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { LISTED_MAX, ROOMS_EVERY_MS } from "../../limits.ts";
import { bytesText, numberText } from "../../parts/format.tsx";
import { IconSearch } from "../../parts/icons.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";

/** Rooms with players or in memory, polled. */
export default function RoomsPage() {
  const resources = useResources();
  return (
    <Page title="Rooms">
      <Loadable query={resources}>
        {({ rooms }) =>
          rooms.length === 0 ? (
            <Empty title="No rooms are declared">
              Declare types of rooms under <code>rooms</code> in platform.config.ts.
            </Empty>
          ) : (
            <Rooms types={rooms} />
          )
        }
      </Loadable>
    </Page>
  );
}

function Rooms({ types }: { types: readonly string[] }) {
  const { state, change } = usePageState<{ type: string; q: string }>();
  const { type, q = "" } = state;
  const rooms = useQuery({
    queryKey: ["rooms", "list", type, q],
    refetchInterval: ROOMS_EVERY_MS,
    placeholderData: keepPreviousData,
    queryFn: () =>
      server.rooms.list({ ...(type === undefined ? {} : { namespace: type }), prefix: q, limit: LISTED_MAX }),
  });
  return (
    <>
      <Group gap="xs">
        <Select
          aria-label="Type"
          placeholder="All types"
          data={[...types]}
          value={type ?? null}
          clearable
          clearButtonProps={{ "aria-label": "All types" }}
          onChange={(next) => change({ type: next ?? undefined })}
        />
        <TextInput
          aria-label="Search"
          placeholder="Beginning of the id"
          leftSection={<IconSearch size={16} aria-hidden />}
          w={260}
          defaultValue={q}
          onChange={(event) => change({ q: event.currentTarget.value || undefined }, { replace: true })}
        />
      </Group>
      <Loadable query={rooms}>
        {({ namespaces, rooms: listed, total }) => (
          <>
            <Group gap="xs">
              {namespaces.map(({ name, rooms: count, players }) => (
                <Badge key={name} variant="default" size="lg" radius="sm" tt="none" fw={500} maw="100%">
                  {name}: {counted(count, "room")}, {counted(players, "player")}
                </Badge>
              ))}
            </Group>
            {listed.length === 0 ? (
              <Empty title={q === "" ? "No rooms are live" : "No live room begins so"}>
                {q === ""
                  ? "A room begins when somebody joins it, and ends when the last one has left."
                  : "Search for the beginning of a room’s id."}
              </Empty>
            ) : (
              <RoomTable rooms={listed} />
            )}
            {total > listed.length ? (
              <Text size="sm" c="dimmed">
                The {numberText(listed.length)} fullest of {numberText(total)}. Search to find others.
              </Text>
            ) : null}
          </>
        )}
      </Loadable>
    </>
  );
}

const counted = (count: number, one: string): string => `${numberText(count)} ${count === 1 ? one : `${one}s`}`;

function RoomTable({ rooms }: { rooms: readonly RoomEntry[] }) {
  return (
    <DataTable
      label="Rooms"
      minWidth={620}
      highlightOnHover
      items={rooms}
      keyOf={({ namespace, id }) => `${namespace}/${id}`}
      columns={[
        {
          title: "Room",
          maxWidth: 360,
          show: ({ namespace, id }) => (
            <Anchor component={Link} to={`/rooms/${encodeURIComponent(namespace)}/${encodeURIComponent(id)}`}>
              <Text size="sm" ff="monospace" truncate title={id}>
                {id}
              </Text>
            </Anchor>
          ),
        },
        {
          title: "Type",
          maxWidth: 200,
          show: ({ namespace }) => (
            <Text size="sm" truncate title={namespace}>
              {namespace}
            </Text>
          ),
        },
        { title: "Players", isNumber: true, show: ({ players }) => numberText(players) },
        { title: "Connections", isNumber: true, show: ({ connections }) => numberText(connections) },
        {
          title: "State",
          isNumber: true,
          show: ({ stateBytes }) =>
            stateBytes === null ? (
              <Text span size="sm" c="dimmed">
                hibernating
              </Text>
            ) : (
              bytesText(stateBytes)
            ),
        },
      ]}
    />
  );
}
