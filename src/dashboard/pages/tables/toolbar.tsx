import { ActionIcon, Button, Checkbox, Group, Menu, Select, Text, Tooltip } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { declaredAs, type TableSchema, useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";
import { IconColumns } from "../../parts/icons.tsx";
import { useViewAs } from "../../shell/view-as.tsx";
import { pageOf, type TableAddress } from "./address.ts";
import { ConditionList, FilterButton, SearchInput } from "./filter.tsx";
import type { Conditions } from "./filter-model.ts";
import type { Columns } from "./grid/columns.ts";

/** Search, filters and columns of the list. */
export function Toolbar({
  schema,
  columns,
  conditions,
  q,
  selectedCount,
  onFilter,
  onSearch,
  onResetColumns,
  children,
}: {
  schema: TableSchema;
  columns: Columns;
  conditions: Conditions;
  q: string;
  selectedCount: number;
  onFilter(conditions: Conditions): void;
  onSearch(words: string): void;
  onResetColumns(): void;
  children?: ReactNode;
}) {
  return (
    <Group gap="xs">
      {schema.fts === null ? null : <SearchInput text={q} onChange={onSearch} />}
      <FilterButton schema={schema} conditions={conditions} onChange={onFilter} />
      <ColumnsMenu columns={columns} onReset={onResetColumns} />
      {children}
      <ConditionList conditions={conditions} onChange={onFilter} />
      {selectedCount === 0 ? null : (
        <Text size="sm" c="dimmed">
          {numberText(selectedCount)} selected
        </Text>
      )}
    </Group>
  );
}

/** Menu that selects the visible columns. */
function ColumnsMenu({ columns, onReset }: { columns: Columns; onReset(): void }) {
  return (
    <Menu closeOnItemClick={false} position="bottom-start" shadow="md">
      <Menu.Target>
        <Tooltip label="Columns">
          <ActionIcon variant="default" size={36} aria-label="Columns">
            <IconColumns size={16} />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown mah={360} maw={320} style={{ overflowY: "auto" }}>
        <Menu.Label>Shown</Menu.Label>
        {columns.getAllLeafColumns().map((column) => (
          <Menu.Item key={column.id} component="div" py={6}>
            <Checkbox
              size="xs"
              label={column.id}
              styles={{ label: { overflowWrap: "anywhere" } }}
              checked={column.getIsVisible()}
              disabled={column.id === "id"}
              onChange={(event) => column.toggleVisibility(event.currentTarget.checked)}
            />
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component="div" py={4}>
          <Button variant="subtle" size="compact-sm" onClick={onReset}>
            As declared
          </Button>
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** Links to the other tables of the namespace or instance. */
export function OtherTables({ address }: { address: TableAddress }) {
  const { may } = useRights();
  const as = useViewAs();
  const navigate = useNavigate();
  const { namespace, table } = address;
  const declared = Object.keys(declaredAs(useResources().data?.namespaces, namespace)?.tables ?? {});
  const tables = declared.filter((name) => name === table || may("db", namespace, name, "read"));
  if (tables.length < 2) return null;
  return (
    <Select
      aria-label="Table"
      w={180}
      data={tables}
      value={table}
      allowDeselect={false}
      searchable
      onChange={(next) => {
        if (next === null || next === table) return;
        void navigate({ to: pageOf({ ...address, table: next }), search: (as === null ? {} : { as }) as never });
      }}
    />
  );
}
