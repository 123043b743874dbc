import {
  Badge,
  Button,
  Group,
  Paper,
  SegmentedControl,
  SimpleGrid,
  Text,
  TextInput,
  UnstyledButton,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { ChannelEntry } from "../../../client/admin/live.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { LISTED_MAX } from "../../limits.ts";
import { numberText } from "../../parts/format.tsx";
import { IconBroadcast, IconSearch } from "../../parts/icons.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Failure, Loadable } from "../../parts/states.tsx";
import { TailDrawer } from "./tail.tsx";

/** Polling interval of realtime figures. */
const REALTIME_EVERY_MS = 1_000;

/** Loaded when opened: its editor is larger than the page. */
const BroadcastForm = lazy(async () => ({ default: (await import("./broadcast.tsx")).BroadcastForm }));

interface RealtimePageState {
  q: string;
  sort: "subscribers" | "rate";
  /** Channel whose messages are shown. */
  channel: string;
}

/** Connections, their subscriptions, and live messages. */
export default function RealtimePage() {
  const { may } = useRights();
  const { state, change } = usePageState<RealtimePageState>();
  const { q = "", channel } = state;
  const sort = state.sort === "rate" ? "rate" : "subscribers";
  const [isSending, sending] = useDisclosure(false);
  const overview = useQuery({
    queryKey: ["realtime", q, sort],
    refetchInterval: REALTIME_EVERY_MS,
    placeholderData: keepPreviousData,
    queryFn: () => server.realtime.overview({ prefix: q, sort, limit: LISTED_MAX }),
  });
  const mayBroadcast = may("realtime", "*", "*", "broadcast");
  return (
    <Page
      title="Realtime"
      actions={
        mayBroadcast ? (
          <Button leftSection={<IconBroadcast size={16} aria-hidden />} onClick={sending.open}>
            Broadcast
          </Button>
        ) : null
      }
    >
      {overview.data !== undefined && overview.error !== null ? <Failure error={overview.error} /> : null}
      <Loadable query={overview}>
        {({ connections, subscriptions, channels, total }) => (
          <>
            <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="sm">
              <Figure name="Connections" value={connections.total} />
              <Figure name="Users" value={connections.users} />
              <Figure name="Subscriptions" value={subscriptions} />
              <Figure name={q === "" ? "Channels" : "Channels found"} value={total} />
            </SimpleGrid>
            <Group gap="xs">
              <TextInput
                aria-label="Search"
                placeholder="Beginning of the channel"
                leftSection={<IconSearch size={16} aria-hidden />}
                w={280}
                defaultValue={q}
                onChange={(event) => change({ q: event.currentTarget.value || undefined }, { replace: true })}
              />
              <SegmentedControl
                aria-label="Order"
                data={[
                  { value: "subscribers", label: "Most subscribers" },
                  { value: "rate", label: "Most messages" },
                ]}
                value={sort}
                // The options are sort orders.
                onChange={(next) => change({ sort: next as RealtimePageState["sort"] })}
              />
            </Group>
            {channels.length === 0 ? (
              <Empty title={q === "" ? "Nobody listens" : "Nobody listens to a channel that begins so"}>
                {q === ""
                  ? "Channels appear here as clients subscribe to tables, presence and broadcasts."
                  : "Search for the beginning of a channel, such as broadcast: or realtime:shared:."}
              </Empty>
            ) : (
              <Channels channels={channels} onOpen={(name) => change({ channel: name })} />
            )}
            {total > channels.length ? (
              <Text size="sm" c="dimmed">
                The first {numberText(channels.length)} of {numberText(total)}. Search to find others.
              </Text>
            ) : null}
          </>
        )}
      </Loadable>
      {channel === undefined ? null : (
        <TailDrawer
          key={channel}
          channel={channel}
          onBroadcast={mayBroadcast && channel.startsWith("broadcast:") ? sending.open : null}
          onClose={() => change({ channel: undefined })}
        />
      )}
      {isSending ? (
        <Suspense>
          <BroadcastForm channel={channel?.startsWith("broadcast:") ? channel : "broadcast:"} onClose={sending.close} />
        </Suspense>
      ) : null}
    </Page>
  );
}

function Figure({ name, value }: { name: string; value: number }) {
  return (
    <Paper withBorder p="sm" component="section" aria-label={name}>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <Text size="xl" fw={600} className="number">
        {numberText(value)}
      </Text>
    </Paper>
  );
}

const COLOURS: Readonly<Record<ChannelEntry["kind"], string>> = {
  table: "blue",
  presence: "green",
  broadcast: "orange",
};

function Channels({ channels, onOpen }: { channels: readonly ChannelEntry[]; onOpen(name: string): void }) {
  return (
    <DataTable
      label="Channels"
      minWidth={640}
      highlightOnHover
      items={channels}
      keyOf={({ name }) => name}
      columns={[
        {
          title: "Channel",
          maxWidth: 420,
          show: ({ name }) => (
            <UnstyledButton onClick={() => onOpen(name)} display="block" maw="100%" title={name}>
              <Text size="sm" ff="monospace" lh="24px" c="var(--mantine-color-anchor)" truncate>
                {name}
              </Text>
            </UnstyledButton>
          ),
        },
        {
          title: "Kind",
          show: ({ kind, entries }) => (
            <Group gap={6} wrap="nowrap">
              <Badge variant="light" color={COLOURS[kind]} flex="none">
                {kind}
              </Badge>
              {entries === null ? null : (
                <Text span size="xs" c="dimmed" className="number" flex="none">
                  {numberText(entries)} present
                </Text>
              )}
            </Group>
          ),
        },
        { title: "Subscribers", isNumber: true, show: ({ subscribers }) => numberText(subscribers) },
        {
          title: "Per second",
          isNumber: true,
          show: ({ perSecond }) => (perSecond === 0 ? "–" : numberText(perSecond)),
        },
        { title: "Messages", isNumber: true, show: ({ messages }) => numberText(messages) },
      ]}
    />
  );
}
