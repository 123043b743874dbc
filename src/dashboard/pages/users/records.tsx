import { Anchor, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Field, type Resources, type TableSchema, useResources } from "../../api/resources.ts";
import { messageOf, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";
import { Section } from "../../parts/page.tsx";
import { Loadable } from "../../parts/states.tsx";
import { pageOf, pathOf, type TableAddress } from "../tables/address.ts";
import { Referrers } from "../tables/record/referrers.tsx";

/** Maximum number of fields searched for a user's records. */
const MENTIONS_MAX = 40;

/** Field that may hold a user's id, and is fast to search. */
interface Mention {
  namespace: string;
  table: string;
  field: string;
}

const PERSON =
  /(?:^|_)(?:user|owner|author|member|creator|sender|recipient|assignee|(?:created|updated)_?by)(?:_?id)?$/i;

/**
 * Returns the fields of tables without instances that may have ids of users and are no references: those that lead an index, and further
 * fields of an index whose names suggest it. Other fields would need a full scan.
 */
function mentionsOf(namespaces: Resources["namespaces"]): Mention[] {
  const found: Mention[] = [];
  for (const [namespace, { instance, tables }] of Object.entries(namespaces)) {
    if (instance) continue;
    for (const [table, schema] of Object.entries(tables)) {
      for (const [field, facts] of Object.entries(schema.fields)) {
        if (mayMention(schema, field, facts)) found.push({ namespace, table, field });
      }
    }
  }
  return found.slice(0, MENTIONS_MAX);
}

function mayMention({ indexes }: TableSchema, field: string, { type, unique, references }: Field): boolean {
  if (type !== "string" || field === "id" || references !== undefined) return false;
  if (unique || indexes.some(({ fields }) => fields[0] === field)) return true;
  return PERSON.test(field) && indexes.some(({ fields }) => fields.includes(field));
}

/** Returns the table of users, if there is one. */
function usersIn(namespaces: Resources["namespaces"]): TableAddress | null {
  for (const [namespace, { tables }] of Object.entries(namespaces)) {
    const table = Object.entries(tables).find(([, { users }]) => users === true)?.[0];
    if (table !== undefined) return { namespace, instance: null, table };
  }
  return null;
}

interface Count extends Mention {
  /** Number of records, or the server's error message. */
  records: number | string;
}

/** Records that refer to the user, by table, and further ones that have the id, each with a link. */
export function Records({ userId }: { userId: string }) {
  const users = usersIn(useResources().data?.namespaces ?? {});
  const { may } = useRights();
  return (
    <Section title="Records">
      {users === null || !may("db", users.namespace, users.table, "read") ? null : (
        <Referrers address={users} id={userId} />
      )}
      <Mentions userId={userId} />
    </Section>
  );
}

/** Records without a reference to the user that have the id. */
function Mentions({ userId }: { userId: string }) {
  const resources = useResources();
  const { may } = useRights();
  const places = mentionsOf(resources.data?.namespaces ?? {}).filter(({ namespace, table }) =>
    may("db", namespace, table, "read"),
  );
  const counts = useQuery({
    queryKey: ["users", userId, "records", places.length],
    enabled: resources.data !== undefined,
    queryFn: () => countAll(places, userId),
  });
  return (
    <Loadable query={counts} rows={2}>
      {(all) => {
        const found = all.filter(({ records }) => records !== 0);
        return found.length === 0 ? (
          <Text size="sm" c="dimmed">
            No other field has the id, as far as indexes tell.
          </Text>
        ) : (
          <Table verticalSpacing={4} aria-label="Fields with the id">
            <Table.Tbody>
              {found.map((count) => (
                <CountLine key={`${count.namespace} ${count.table} ${count.field}`} count={count} userId={userId} />
              ))}
            </Table.Tbody>
          </Table>
        );
      }}
    </Loadable>
  );
}

function CountLine({ count: { namespace, table, field, records }, userId }: { count: Count; userId: string }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor
          component={Link}
          size="sm"
          to={pageOf({ namespace, instance: null, table })}
          search={{ filter: [[field, "==", userId]] } as never}
        >
          {namespace} / {table}
        </Anchor>
      </Table.Td>
      <Table.Td c="dimmed">{field}</Table.Td>
      <Table.Td ta="right" className="number">
        {typeof records === "number" ? numberText(records) : records}
      </Table.Td>
    </Table.Tr>
  );
}

/** Counts sequentially, so that a user of many tables does not occupy every reader of the server. */
async function countAll(places: readonly Mention[], userId: string): Promise<Count[]> {
  const counts: Count[] = [];
  for (const place of places) {
    const path = `${pathOf({ namespace: place.namespace, instance: null, table: place.table })}/count`;
    const filter = JSON.stringify([[place.field, "==", userId]]);
    const records = await server
      .request<{ total: number }>("GET", path, { query: { filter } })
      .then(({ total }) => total, messageOf);
    counts.push({ ...place, records });
  }
  return counts;
}
