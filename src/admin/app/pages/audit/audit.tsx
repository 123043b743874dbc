import { Button, Code, Group, Table, Text, TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { server } from "../../api/server.ts";
import { usePageState } from "../../parts/address.ts";
import { timeText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { Wide } from "../../parts/wide.tsx";

interface Entry {
  at: string;
  actor: { kind: string; name: string | null; as?: string };
  address: string | null;
  action: string;
  target: string;
  before: unknown;
  after: unknown;
  requestId: string | null;
}

interface EntryPage {
  entries: Entry[];
  cursor: string | null;
}

interface AuditState {
  actor: string;
  action: string;
  target: string;
}

const PAGE = 50;
const FILTERS: readonly (readonly [keyof AuditState, string])[] = [
  ["actor", "Actor"],
  ["action", "Action"],
  ["target", "Target"],
];

/** What keys and administrators have changed, and who has signed in, the newest first. */
export default function AuditPage() {
  const { state, change } = usePageState<AuditState>();
  const { actor = "", action = "", target = "" } = state;
  const given = { actor, action, target };
  const pages = useInfiniteQuery({
    queryKey: ["audit", given],
    initialPageParam: null as string | null,
    getNextPageParam: ({ cursor }: EntryPage) => cursor,
    queryFn: ({ pageParam }) =>
      server.request<EntryPage>("GET", "/api/admin/audit", {
        query: { limit: PAGE, cursor: pageParam, actor: actor || null, action: action || null, target: target || null },
      }),
  });
  const entries = pages.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Page title="Audit">
      <Group gap="xs">
        {FILTERS.map(([name, label]) => (
          <TextInput
            key={name}
            aria-label={label}
            placeholder={label}
            w={200}
            defaultValue={given[name]}
            onChange={(event) => change({ [name]: event.currentTarget.value || undefined }, { replace: true })}
          />
        ))}
      </Group>
      {pages.error === null ? null : <Failure error={pages.error} onRetry={() => void pages.refetch()} />}
      {pages.isPending ? <Loading /> : null}
      {!pages.isPending && entries.length === 0 && pages.error === null ? (
        <Empty title="No entries">
          What keys and administrators change, and every sign-in, is kept here for a year.
        </Empty>
      ) : (
        <Wide minWidth={760}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Time</Table.Th>
                <Table.Th>Actor</Table.Th>
                <Table.Th>Action</Table.Th>
                <Table.Th>Target</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {entries.map((entry) => (
                <EntryLines key={`${entry.at} ${entry.action} ${entry.target} ${entry.requestId}`} entry={entry} />
              ))}
            </Table.Tbody>
          </Table>
        </Wide>
      )}
      {pages.hasNextPage ? (
        <Button variant="default" onClick={() => void pages.fetchNextPage()} loading={pages.isFetchingNextPage}>
          More
        </Button>
      ) : null}
    </Page>
  );
}

function EntryLines({ entry }: { entry: Entry }) {
  const [isOpen, setIsOpen] = useState(false);
  const { at, actor, address, action, target, before, after, requestId } = entry;
  return (
    <Fragment>
      <Table.Tr>
        <Table.Td className="number">{timeText(at)}</Table.Td>
        <Table.Td>
          {actor.name ?? actor.kind}
          {actor.as === undefined ? "" : ` as ${actor.as}`}
          <Text size="xs" c="dimmed">
            {address}
          </Text>
        </Table.Td>
        <Table.Td>
          <Button variant="subtle" size="compact-sm" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {action}
          </Button>
        </Table.Td>
        <Table.Td maw={360}>
          <Text size="sm" ff="monospace" truncate>
            {target}
          </Text>
        </Table.Td>
      </Table.Tr>
      {isOpen ? (
        <Table.Tr>
          <Table.Td colSpan={4}>
            <Text size="xs" c="dimmed">
              Request {requestId ?? "unknown"}
            </Text>
            <Text size="sm">Before</Text>
            <Code block>{JSON.stringify(before, null, 2)}</Code>
            <Text size="sm">After</Text>
            <Code block>{JSON.stringify(after, null, 2)}</Code>
          </Table.Td>
        </Table.Tr>
      ) : null}
    </Fragment>
  );
}
