import { Anchor, Button, Group, Table, Text, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import type { AuditEntry } from "../../../client/admin/index.ts";
import { useResources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { Time } from "../../parts/format.tsx";
import { Json } from "../../parts/json.tsx";
import { OPENING_ROW, Paged, usePaged, Wide, WideDetail } from "../../parts/list/list.tsx";
import { beginningOf, type Since, SinceSelect, sinceOf } from "../../parts/list/since.tsx";
import { RequestLink, UserName } from "../../parts/name.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { pageOf } from "../tables/address.ts";
import { type RecordPlace, recordPlace, useRecordTitles } from "../tables/titles.ts";

interface AuditState {
  actor: string;
  action: string;
  target: string;
  since: Since;
}

const PAGE = 50;
const FILTERS: readonly (readonly ["actor" | "action" | "target", string])[] = [
  ["actor", "Actor"],
  ["action", "Action"],
  ["target", "Target"],
];

/** Changes by keys and administrators, and sign-ins, newest first. */
export default function AuditPage() {
  const { state, change } = usePageState<AuditState>();
  const { actor = "", action = "", target = "" } = state;
  const since = sinceOf(state.since);
  const given = { actor, action, target };
  const list = usePaged({
    queryKey: ["audit", given, since],
    // The address also holds other parameters, such as View as.
    load: (cursor) =>
      server.audit.list({
        limit: PAGE,
        cursor,
        ...(actor === "" ? {} : { actor }),
        ...(action === "" ? {} : { action }),
        ...(target === "" ? {} : { target }),
        ...(since === undefined ? {} : { after: beginningOf(since) }),
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
        <SinceSelect value={since} onChange={(next) => change({ since: next })} />
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
              <Entries entries={entries} />
            </Table>
          </Wide>
        )}
      </Paged>
    </Page>
  );
}

/** Returns entries with unique keys. Equal entries of one request, such as two changes of a record, are numbered. */
function keyed(entries: readonly AuditEntry[]): [key: string, entry: AuditEntry][] {
  const seen = new Map<string, number>();
  return entries.map((entry) => {
    const text = `${entry.at} ${entry.action} ${entry.target} ${entry.requestId}`;
    const count = seen.get(text) ?? 0;
    seen.set(text, count + 1);
    return [`${text} ${count}`, entry];
  });
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  const namespaces = useResources().data?.namespaces ?? {};
  const places = new Map(entries.map(({ target }) => [target, recordPlace(target, namespaces)]));
  const titleOf = useRecordTitles([...places.values()].filter((place) => place !== null));
  return (
    <Table.Tbody>
      {keyed(entries).map(([key, entry]) => {
        const place = places.get(entry.target) ?? null;
        return <EntryLines key={key} entry={entry} place={place} title={place === null ? undefined : titleOf(place)} />;
      })}
    </Table.Tbody>
  );
}

/** Matches the target of an entry about a user: `auth/users/ID`, and targets below it. */
const USER_TARGET = /^(?:auth\/)?users\/([^/]+)/;

function EntryLines({
  entry,
  place,
  title,
}: {
  entry: AuditEntry;
  /** The record that it is about. */
  place: RecordPlace | null;
  /** Title of the record, as far as it exists and the key may read it. */
  title: string | undefined;
}) {
  const [isOpen, setIsOpen] = useState(false);
  const { at, actor, address, action, target, before, after, requestId } = entry;
  const person = actor.as ?? (actor.kind === "user" ? actor.name : null);
  const [, userId] = USER_TARGET.exec(target) ?? [];
  return (
    <Fragment>
      <Table.Tr {...OPENING_ROW}>
        <Table.Td className="number">
          <Time time={at} />
        </Table.Td>
        <Table.Td>
          {actor.name ?? actor.kind}
          {actor.as === undefined ? "" : ` as ${actor.as}`}
          {person === null || person === "anonymous" ? null : (
            <div>
              <UserName id={person} />
            </div>
          )}
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
          {place === null || title === undefined ? (
            <Text size="sm" ff="monospace" truncate title={target}>
              {target}
            </Text>
          ) : (
            <>
              <Anchor
                component={Link}
                size="sm"
                display="block"
                truncate
                title={target}
                to={pageOf(place.address)}
                search={{ record: place.id } as never}
              >
                <bdi>{title}</bdi>
              </Anchor>
              <Text size="xs" c="dimmed" truncate>
                {place.address.namespace} {place.address.instance} {place.address.table}
              </Text>
            </>
          )}
          {userId === undefined ? null : <UserName id={userId} />}
        </Table.Td>
      </Table.Tr>
      {isOpen ? (
        <Table.Tr>
          <Table.Td colSpan={4}>
            <WideDetail>
              <Text size="sm" ff="monospace" className="wrapped">
                {target}
              </Text>
              {requestId === null ? null : <RequestLink id={requestId} />}
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
