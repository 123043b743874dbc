import { Button, Group, Table, Text, TextInput } from "@mantine/core";
import { Fragment, useState } from "react";
import type { AuditEntry } from "../../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { usePageState } from "../../parts/address.ts";
import { timeText } from "../../parts/format.ts";
import { Json } from "../../parts/json/json.tsx";
import { Paged, usePaged } from "../../parts/list/paged.tsx";
import { Page } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { Wide, WideDetail } from "../../parts/wide.tsx";

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
  const list = usePaged({
    queryKey: ["audit", given],
    // The address has more in it than these, such as whose view it is.
    load: (cursor) =>
      server.audit.list({
        limit: PAGE,
        cursor,
        ...(actor === "" ? {} : { actor }),
        ...(action === "" ? {} : { action }),
        ...(target === "" ? {} : { target }),
      }),
  });
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
      <Paged
        list={list}
        empty={
          <Empty title="No entries">
            What keys and administrators change, and every sign-in, is kept here for a year.
          </Empty>
        }
      >
        {(entries) => (
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
                {keyed(entries).map(([key, entry]) => (
                  <EntryLines key={key} entry={entry} />
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
        )}
      </Paged>
    </Page>
  );
}

/** Each with its key: equal entries of one request, such as two changes of a record, are told apart by how many there were before. */
function keyed(entries: readonly AuditEntry[]): [key: string, entry: AuditEntry][] {
  const seen = new Map<string, number>();
  return entries.map((entry) => {
    const text = `${entry.at} ${entry.action} ${entry.target} ${entry.requestId}`;
    const count = seen.get(text) ?? 0;
    seen.set(text, count + 1);
    return [`${text} ${count}`, entry];
  });
}

function EntryLines({ entry }: { entry: AuditEntry }) {
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
            <WideDetail>
              <Text size="sm" ff="monospace" className="wrapped">
                {target}
              </Text>
              <Text size="xs" c="dimmed">
                Request {requestId ?? "unknown"}
              </Text>
              <Text size="sm">Before</Text>
              <Json value={before} />
              <Text size="sm">After</Text>
              <Json value={after} />
            </WideDetail>
          </Table.Td>
        </Table.Tr>
      ) : null}
    </Fragment>
  );
}
