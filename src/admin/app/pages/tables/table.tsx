import { ActionIcon, Button, Checkbox, Group, Menu, Text, TextInput, Tooltip } from "@mantine/core";
import { IconColumns, IconPlus, IconSearch, IconTrash } from "@tabler/icons-react";
import { useCallback, useMemo, useState } from "react";
import { type TableSchema, useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { usePageState, usePathParameters } from "../../parts/address.ts";
import { numberText } from "../../parts/format.ts";
import { Page } from "../../parts/page.tsx";
import { Empty, Failure, Loadable, Loading } from "../../parts/states.tsx";
import { useServer } from "../../shell/view-as.tsx";
import { NO_INSTANCE, pathOf, type TableAddress } from "./address.ts";
import { deleteSoon, useHidden } from "./deletions.tsx";
import { Conditions, FilterButton } from "./filter.tsx";
import type { Condition } from "./filter-model.ts";
import { type Columns, useColumns } from "./grid/columns.ts";
import { Grid } from "./grid/grid.tsx";
import { useLive } from "./live.ts";
import { NEW_RECORD, RecordDrawer } from "./record.tsx";
import { type Row, showRecord, useRows } from "./rows.ts";

/** In the address of the page. */
interface TableState {
  filter?: Condition[];
  sort?: string;
  q?: string;
  record?: string;
}

export default function TablePage() {
  const { namespace, instance, table } = usePathParameters<"namespace" | "instance" | "table">();
  const address = useMemo(
    () => ({ namespace, instance: instance === NO_INSTANCE ? null : instance, table }),
    [namespace, instance, table],
  );
  const schema = useResources();
  return (
    <Loadable query={schema}>
      {({ namespaces }) => {
        const found = namespaces[namespace]?.tables[table];
        if (found === undefined) return <Page title={table}>{<Empty title="There is no such table" />}</Page>;
        // Columns, selection and focus belong to one table.
        return <TableOf key={`${namespace}/${instance}/${table}`} address={address} schema={found} />;
      }}
    </Loadable>
  );
}

const NO_CONDITIONS: readonly Condition[] = [];

function TableOf({ address, schema }: { address: TableAddress; schema: TableSchema }) {
  const server = useServer();
  const { may } = useRights();
  const { state, change } = usePageState<TableState>();
  const { filter = NO_CONDITIONS, sort = null, q = "", record } = state;
  const [pages, setPages] = useState<readonly number[]>([0]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const listing = useMemo(() => ({ filter, sort, search: q }), [filter, sort, q]);
  const rows = useRows(address, listing, pages);
  const columns = useColumns(address, schema);
  const flashing = useLive(address);
  const hidden = useHidden();
  const rightTo = (action: string): boolean => may("db", address.namespace, address.table, action);

  const save = async (row: Row, field: string, value: unknown): Promise<void> => {
    const path = `${pathOf(address)}/${encodeURIComponent(row.id)}`;
    showRecord(address, await server.request<Row>("PATCH", path, { body: { [field]: value } }));
  };
  const remove = (ids: readonly string[]): void => {
    deleteSoon(server, address, ids);
    setSelected(new Set());
  };
  const open = useCallback((id: string | undefined) => change({ record: id }), [change]);
  const isEmpty = !rows.isLoading && rows.error === null && rows.count === 0;
  return (
    <Page
      fills
      title={address.table}
      hint={`${address.instance === null ? address.namespace : `${address.namespace} / ${address.instance}`}${rows.total === null ? "" : `, ${numberText(rows.total)} records`}`}
      actions={
        <>
          {selected.size > 0 && rightTo("delete") ? (
            <Button
              color="red"
              variant="light"
              leftSection={<IconTrash size={16} aria-hidden />}
              onClick={() => remove([...selected])}
            >
              Delete
            </Button>
          ) : null}
          {rightTo("insert") ? (
            <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => open(NEW_RECORD)}>
              Insert
            </Button>
          ) : null}
        </>
      }
    >
      <Toolbar schema={schema} columns={columns} filter={filter} q={q} selectedCount={selected.size} change={change} />
      {rows.error === null ? null : <Failure error={rows.error} onRetry={rows.refetch} />}
      {rows.isLoading ? <Loading rows={12} /> : null}
      {isEmpty ? (
        <Empty title={filter.length === 0 && q === "" ? "No records yet" : "Nothing matches"}>
          {filter.length === 0 && q === ""
            ? "Insert one, or import a file with platform import."
            : "Remove a condition to see more."}
        </Empty>
      ) : null}
      {rows.count === 0 ? null : (
        <Grid
          name={address.table}
          schema={schema}
          columns={columns}
          count={rows.count}
          rowAt={rows.rowAt}
          onPages={setPages}
          sort={sort}
          onSort={(next) => change({ sort: next ?? undefined })}
          selected={selected}
          onSelect={setSelected}
          flashing={flashing}
          hidden={hidden}
          isReadOnly={!rightTo("update")}
          save={save}
          open={({ id }) => open(id)}
        />
      )}
      {record === undefined ? null : (
        <RecordDrawer
          key={record}
          address={address}
          schema={schema}
          id={record}
          isReadOnly={record === NEW_RECORD ? !rightTo("insert") : !rightTo("update")}
          onClose={() => open(undefined)}
          onDelete={(id) => remove([id])}
        />
      )}
    </Page>
  );
}

type Change = ReturnType<typeof usePageState<TableState>>["change"];

function Toolbar({
  schema,
  columns,
  filter,
  q,
  selectedCount,
  change,
}: {
  schema: TableSchema;
  columns: Columns;
  filter: readonly Condition[];
  q: string;
  selectedCount: number;
  change: Change;
}) {
  const filterBy = (next: readonly Condition[]): void => change({ filter: next.length === 0 ? undefined : [...next] });
  return (
    <Group gap="xs">
      {schema.fts === null ? null : (
        <SearchInput text={q} onChange={(text) => change({ q: text === "" ? undefined : text }, { replace: true })} />
      )}
      <FilterButton schema={schema} filter={filter} onChange={filterBy} />
      <ColumnMenu columns={columns} />
      <Conditions filter={filter} onChange={filterBy} />
      {selectedCount === 0 ? null : (
        <Text size="sm" c="dimmed">
          {numberText(selectedCount)} selected
        </Text>
      )}
    </Group>
  );
}

function SearchInput({ text, onChange }: { text: string; onChange(text: string): void }) {
  return (
    <TextInput
      aria-label="Search"
      placeholder="Search"
      leftSection={<IconSearch size={16} aria-hidden />}
      defaultValue={text}
      onChange={(event) => onChange(event.currentTarget.value)}
      w={220}
    />
  );
}

/** Which columns are shown, and which stay in view. */
function ColumnMenu({ columns }: { columns: Columns }) {
  return (
    <Menu closeOnItemClick={false} position="bottom-start">
      <Menu.Target>
        <Tooltip label="Columns">
          <ActionIcon variant="default" size={36} aria-label="Columns">
            <IconColumns size={16} />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown mah={360} style={{ overflowY: "auto" }}>
        <Menu.Label>Shown</Menu.Label>
        {columns.getAllLeafColumns().map((column) => (
          <Menu.Item key={column.id} component="div">
            <Checkbox
              size="xs"
              label={column.id}
              checked={column.getIsVisible()}
              disabled={column.id === "id"}
              onChange={(event) => column.toggleVisibility(event.currentTarget.checked)}
            />
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
