import { Button, Tabs } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { declaredAs, referenceOf, type TableSchema, useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";
import { IconPlus, IconTrash } from "../../parts/icons.tsx";
import { useSelection } from "../../parts/list/list.tsx";
import { Page, usePageState, usePathParameters } from "../../parts/page.tsx";
import { Empty, Failure, Loadable, Loading } from "../../parts/states.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { NO_INSTANCE, pathOf, type TableAddress } from "./address.ts";
import { type Condition, isNarrowed } from "./filter-model.ts";
import { type GridColumn, useColumns } from "./grid/columns.ts";
import { Grid } from "./grid/grid.tsx";
import { useLive } from "./live.ts";
import { RecordDrawer } from "./record/drawer.tsx";
import { useReferenceTarget } from "./record/reference.tsx";
import { NEW_RECORD, type RecordState } from "./record/state.tsx";
import { deleteSoon, type Listing, type Row, showRecord, useHidden, useRows, withFoundFields } from "./rows.ts";
import { SchemaTab } from "./schema.tsx";
import { Summary } from "./summary.tsx";
import { useTitles } from "./titles.ts";
import { OtherTables, Toolbar } from "./toolbar.tsx";
import { Transfer } from "./transfer/transfer.tsx";

/** State of the page, kept in its address. */
interface TableState extends RecordState {
  tab?: "schema";
  filter?: readonly Condition[];
  orFilter?: readonly Condition[];
  sort?: string;
  q?: string;
  /** Column whose summary is shown. */
  summary?: string;
}

export default function TablePage() {
  const { namespace, instance, table } = usePathParameters<"namespace" | "instance" | "table">();
  const schema = useResources();
  // The placeholder is a valid instance name too.
  const hasInstances = declaredAs(schema.data?.namespaces, namespace)?.instance === true;
  const address = useMemo(
    () => ({ namespace, instance: instance === NO_INSTANCE && !hasInstances ? null : instance, table }),
    [namespace, instance, table, hasInstances],
  );
  return (
    <Loadable query={schema}>
      {({ namespaces }) => {
        const found = declaredAs(declaredAs(namespaces, namespace)?.tables, table);
        if (found === undefined) return <Page title={table}>{<Empty title="There is no such table" />}</Page>;
        // Columns, selection and focus belong to one table.
        return <TableOf key={`${namespace}/${instance}/${table}`} address={address} schema={found} />;
      }}
    </Loadable>
  );
}

const NO_CONDITIONS: readonly Condition[] = [];

/** Addresses are untrusted: anything but a list is no condition, and the server validates the lists. */
const isCondition = (given: unknown): given is Condition => Array.isArray(given);
const conditionsOf = (given: unknown): readonly Condition[] =>
  Array.isArray(given) && given.every(isCondition) ? given : NO_CONDITIONS;

function emptyText({ view, users }: TableSchema): string {
  if (view === true) return "The tables of this view have none for it.";
  return users === true ? "They come with accounts." : "Insert one, or import a file.";
}

const placeOf = ({ namespace, instance }: TableAddress): string =>
  instance === null ? namespace : `${namespace} / ${instance}`;

/** Returns whether an administrator may change records so; never those of a view. Users come and go with accounts. */
function useRightTo({ namespace, table }: TableAddress, { view, users }: TableSchema): (action: string) => boolean {
  const { may } = useRights();
  const isPossible = (action: string): boolean => view !== true && (users !== true || action === "update");
  return (action) => isPossible(action) && may("db", namespace, table, action);
}

function TableOf({ address, schema }: { address: TableAddress; schema: TableSchema }) {
  const server = useServer();
  const rightTo = useRightTo(address, schema);
  const { state, change } = usePageState<TableState>();
  const { sort = null, q = "", record, tab } = state;
  const [filter, orFilter] = [conditionsOf(state.filter), conditionsOf(state.orFilter)];
  const [pages, setPages] = useState<readonly number[]>([0]);
  const [selected, setSelected] = useSelection(JSON.stringify([useViewAs(), filter, orFilter, q]));
  const listing = useMemo(
    () => ({ conditions: { all: filter, any: orFilter }, sort, search: q }),
    [filter, orFilter, sort, q],
  );
  const rows = useRows(address, listing, pages);
  const remove = (ids: readonly string[]): void => {
    deleteSoon(server, address, ids);
    setSelected(new Set());
  };
  const open = useCallback(
    (id: string | undefined, from?: string) => change({ record: id, from, panel: undefined, tryAs: undefined }),
    [change],
  );
  return (
    <Page
      fills={tab !== "schema"}
      title={address.table}
      hint={`${placeOf(address)}${rows.total === null ? "" : `, ${numberText(rows.total)} records`}`}
      actions={
        <>
          <OtherTables address={address} />
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
      <Tabs
        value={tab ?? "records"}
        onChange={(next) => change({ tab: next === "schema" ? "schema" : undefined })}
        keepMounted={false}
      >
        <Tabs.List>
          <Tabs.Tab value="records">Records</Tabs.Tab>
          <Tabs.Tab value="schema">Schema</Tabs.Tab>
        </Tabs.List>
      </Tabs>
      {tab === "schema" ? (
        <SchemaTab address={address} schema={schema} />
      ) : (
        <Records
          address={address}
          schema={schema}
          rows={rows}
          listing={listing}
          summary={state.summary}
          isReadOnly={!rightTo("update")}
          mayInsert={rightTo("insert")}
          change={change}
          onPages={setPages}
          selected={selected}
          onSelect={setSelected}
          open={open}
        />
      )}
      {record === undefined ? null : (
        <RecordDrawer
          key={`${record} ${state.from}`}
          address={address}
          schema={schema}
          id={record}
          isReadOnly={record === NEW_RECORD ? !rightTo("insert") : !rightTo("update")}
          onClose={() => open(undefined)}
          onDuplicate={rightTo("insert") ? (id) => open(NEW_RECORD, id) : undefined}
          onDelete={rightTo("delete") ? (id) => remove([id]) : undefined}
        />
      )}
    </Page>
  );
}

interface RecordsProps {
  address: TableAddress;
  schema: TableSchema;
  rows: ReturnType<typeof useRows>;
  listing: Listing;
  summary: string | undefined;
  isReadOnly: boolean;
  mayInsert: boolean;
  change: ReturnType<typeof usePageState<TableState>>["change"];
  onPages(pages: readonly number[]): void;
  selected: ReadonlySet<string>;
  onSelect(selected: ReadonlySet<string>): void;
  open(id: string): void;
}

/** Grid with its filters and summary. */
function Records({ address, schema: declared, rows, listing, summary, change, ...props }: RecordsProps) {
  const schema = useMemo(() => withFoundFields(declared, rows.first), [declared, rows.first]);
  const server = useServer();
  const { table: columns, forget } = useColumns(address, schema);
  const hidden = useHidden();
  const follow = useFollow(address);
  const titleOf = useTitles(address, schema, rows.loaded);
  const { conditions, sort, search } = listing;
  const isPart = isNarrowed(conditions) || search !== "";
  const flashing = useLive(address, isPart || sort !== null || summary !== undefined);
  const [isEditing, setIsEditing] = useState(false);
  const isEmpty = !rows.isLoading && rows.error === null && rows.count === 0;
  const { mutateAsync: saveCell } = useMutation({
    mutationFn: ({ row, field, value }: { row: Row; field: string; value: unknown }) =>
      server.request<Row>("PATCH", `${pathOf(address)}/${encodeURIComponent(row.id)}`, { body: { [field]: value } }),
  });
  const save = async (row: Row, field: string, value: unknown): Promise<void> =>
    showRecord(address, await saveCell({ row, field, value }));
  const onSort = useCallback((next: string | null) => change({ sort: next ?? undefined }), [change]);
  const onSummary = useCallback((column: string) => change({ summary: column }), [change]);
  // Summaries exist for declared fields only.
  const hasSummary = useCallback((column: string) => declared.fields[column] !== undefined, [declared]);
  return (
    <>
      <Toolbar
        schema={schema}
        columns={columns}
        conditions={conditions}
        q={search}
        selectedCount={props.selected.size}
        onFilter={({ all, any }) =>
          change({ filter: all.length === 0 ? undefined : all, orFilter: any.length === 0 ? undefined : any })
        }
        onSearch={(words) => change({ q: words === "" ? undefined : words }, { replace: true })}
        onResetColumns={forget}
      >
        <Transfer address={address} schema={schema} listing={listing} mayImport={props.mayInsert} />
      </Toolbar>
      {rows.error === null ? null : <Failure error={rows.error} onRetry={rows.refetch} />}
      {rows.isLoading ? <Loading rows={12} /> : null}
      {isEmpty ? (
        <Empty title={isPart ? "Nothing matches" : "No records yet"}>
          {isPart ? "Remove a condition to see more." : emptyText(schema)}
        </Empty>
      ) : null}
      {rows.count === 0 && !isEditing ? null : (
        <Grid
          address={address}
          schema={schema}
          table={columns}
          count={rows.count}
          pageRows={rows.pageRows}
          rowAt={rows.rowAt}
          onPages={props.onPages}
          sort={sort}
          onSort={onSort}
          onSummary={onSummary}
          hasSummary={hasSummary}
          selected={props.selected}
          onSelect={props.onSelect}
          flashing={flashing}
          hidden={hidden}
          titleOf={titleOf}
          isReadOnly={props.isReadOnly}
          save={save}
          onEditing={setIsEditing}
          open={({ id }) => props.open(id)}
          follow={follow}
        />
      )}
      {summary === undefined || declaredAs(declared.fields, summary) === undefined ? null : (
        <Summary
          address={address}
          schema={schema}
          column={summary}
          conditions={conditions}
          isSearch={search !== ""}
          onClose={() => change({ summary: undefined })}
        />
      )}
    </>
  );
}

/** Returns a function that opens the record a field refers to. */
function useFollow(address: TableAddress) {
  const navigate = useNavigate();
  const targetOf = useReferenceTarget(address);
  return (row: Row, { id, field }: GridColumn): void => {
    const value = row[id];
    const references = referenceOf(field);
    if (references === undefined || value === null || value === undefined) return;
    const target = targetOf(references, String(value));
    if (target !== null) void navigate(target);
  };
}
