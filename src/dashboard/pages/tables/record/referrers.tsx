import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Referrer } from "../../../../client/admin/tables.ts";
import { type Field, type Resources, useResources } from "../../../api/resources.ts";
import { server } from "../../../api/server.ts";
import { numberText } from "../../../parts/format.tsx";
import { Paged, usePaged } from "../../../parts/list/list.tsx";
import { keyOf, pageOf, type TableAddress } from "../address.ts";

/** Records of one field that the server counts. */
const COUNTED_MAX = 1_000;

/** A field of a table that refers to another table. */
interface ReferringField {
  namespace: string;
  table: string;
  column: string;
  field: Field;
}

/** Returns the fields of all namespaces that refer to a table. */
export function referringFields(namespaces: Resources["namespaces"], to: TableAddress): ReferringField[] {
  return Object.entries(namespaces).flatMap(([namespace, { tables }]) =>
    Object.entries(tables).flatMap(([table, { fields }]) =>
      Object.entries(fields).flatMap(([column, field]) => {
        const { references } = field;
        const isTo = references?.table === to.table && (references.namespace ?? namespace) === to.namespace;
        return isTo ? [{ namespace, table, column, field }] : [];
      }),
    ),
  );
}

/** Returns the search that shows the records that a referrer counts, in the grid of their table. */
function searchOf(namespaces: Resources["namespaces"], { namespace, table, field }: Referrer, id: string): never {
  const isSeveral = namespaces[namespace]?.tables[table]?.fields[field]?.type === "references";
  // The page parses its own parameters.
  return { filter: [[field, isSeveral ? "has" : "==", id]] } as never;
}

/** Records of all files that refer to one, by field, each with a link: as many instances at once as the server looks at. */
export function Referrers({ address, id }: { address: TableAddress; id: string }) {
  const namespaces = useResources().data?.namespaces ?? {};
  const { namespace, table, instance } = address;
  const list = usePaged<Referrer>({
    queryKey: [...keyOf(address), "referrers", id],
    load: (cursor) =>
      server.tables.referrers({ namespace, table, instanceId: instance ?? undefined }, id, {
        cursor: cursor ?? undefined,
      }),
  });
  const empty = (
    <Text size="sm" c="dimmed">
      {list.more === null ? "No record refers to it." : "None yet: there are more instances to look at."}
    </Text>
  );
  return (
    <Paged list={list} rows={2} empty={empty}>
      {(found) => (
        <Table verticalSpacing={4} aria-label="Referred by">
          <Table.Tbody>
            {found.map((one) => {
              const at = { namespace: one.namespace, instance: one.instanceId, table: one.table };
              return (
                <Table.Tr key={`${pageOf(at)} ${one.field}`}>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>
                    <Anchor component={Link} size="sm" to={pageOf(at)} search={searchOf(namespaces, one, id)}>
                      {[one.namespace, ...(one.instanceId === null ? [] : [one.instanceId]), one.table].join(" / ")}
                    </Anchor>
                  </Table.Td>
                  <Table.Td c="dimmed">{one.field}</Table.Td>
                  <Table.Td ta="right" className="number">
                    {numberText(one.records)}
                    {one.records < COUNTED_MAX ? "" : "+"}
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      )}
    </Paged>
  );
}
