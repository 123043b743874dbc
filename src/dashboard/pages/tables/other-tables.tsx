import { Select } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { declaredAs, useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { useViewAs } from "../../shell/view-as.tsx";
import { pageOf, type TableAddress } from "./address.ts";

/** From the page of a table to another one of its namespace or instance. */
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
