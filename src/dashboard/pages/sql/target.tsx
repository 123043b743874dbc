import { Autocomplete, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Sql } from "../../../client/admin/stores.ts";
import type { Resources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";

/** Database, or tables of a namespace or an instance, that statements are for. */
export interface SqlTarget {
  /** Name under which its history is kept; that of a database is its own. */
  key: string;
  /** The namespace whose tables are queried; null for a database. */
  namespace: string | null;
  isReadOnly: boolean;
  sql: Sql;
}

/** The choice, as it stands in the address. */
export interface SqlChoice {
  database: string;
  namespace: string;
  instance: string;
}

const INSTANCES_SHOWN = 20;
const TYPING_MS = 200;
/** Mark of the values of namespaces among those of databases, whose names have no space. */
const TABLES_OF = "tables ";

/** Returns what the address chooses, or the first that there is. null: an instance has to be chosen. */
export function useTarget(
  { database, namespace, instance }: Partial<SqlChoice>,
  { d1, namespaces }: Resources,
): { chosen: string; target: SqlTarget | null; hasInstances: boolean } {
  const { isRoot } = useRights();
  const [first] = d1;
  const [firstNamespace] = isRoot ? Object.keys(namespaces) : [];
  const name = database ?? (namespace === undefined ? first : undefined);
  const space = name === undefined ? (namespace ?? firstNamespace ?? "") : null;
  const hasInstances = space !== null && Object.hasOwn(namespaces, space) && namespaces[space]?.instance === true;
  const target = useMemo((): SqlTarget | null => {
    if (name !== undefined) return { key: name, namespace: null, isReadOnly: false, sql: server.sql(name) };
    if (space === null || (hasInstances && instance === undefined)) return null;
    const of = hasInstances ? instance : undefined;
    return {
      key: [`${TABLES_OF}${space}`, ...(of === undefined ? [] : [of])].join("/"),
      namespace: space,
      isReadOnly: true,
      sql: server.tableSql(space, of),
    };
  }, [name, space, hasInstances, instance]);
  return { chosen: name ?? `${TABLES_OF}${space}`, target, hasInstances };
}

/** Chooses a database or a namespace, and the instance where it has some. */
export function TargetChoice({
  chosen,
  hasInstances,
  instance,
  resources: { d1, namespaces },
  onChange,
}: {
  chosen: string;
  hasInstances: boolean;
  instance: string | undefined;
  resources: Resources;
  onChange(choice: { [Name in keyof SqlChoice]: string | undefined }): void;
}) {
  const { isRoot } = useRights();
  const spaces = isRoot ? Object.keys(namespaces) : [];
  const values = [...d1, ...spaces.map((name) => TABLES_OF + name)];
  const groups = [
    { group: "Databases", items: values.includes(chosen) || chosen.startsWith(TABLES_OF) ? [...d1] : [...d1, chosen] },
    { group: "Tables, read-only", items: spaces.map((name) => ({ value: TABLES_OF + name, label: name })) },
  ];
  return (
    <>
      <Select
        aria-label="Database"
        data={groups.filter(({ items }) => items.length > 0)}
        value={chosen}
        allowDeselect={false}
        searchable={values.length > INSTANCES_SHOWN}
        onChange={(next) => {
          if (next === null) return;
          const isTables = next.startsWith(TABLES_OF);
          const database = isTables ? undefined : next;
          onChange({ database, namespace: isTables ? next.slice(TABLES_OF.length) : undefined, instance: undefined });
        }}
      />
      {hasInstances ? (
        <InstanceChoice
          key={`${chosen} ${instance ?? ""}`}
          namespace={chosen.slice(TABLES_OF.length)}
          instance={instance}
          onChoose={(id) => onChange({ database: undefined, namespace: chosen.slice(TABLES_OF.length), instance: id })}
        />
      ) : null}
    </>
  );
}

/** Input for the id of an instance, which suggests those that begin so. */
function InstanceChoice({
  namespace,
  instance,
  onChoose,
}: {
  namespace: string;
  instance: string | undefined;
  onChoose(id: string): void;
}) {
  const [text, setText] = useState(instance ?? "");
  const [prefix] = useDebouncedValue(text, TYPING_MS);
  const list = useQuery({
    queryKey: ["instances", namespace, prefix, "begin"],
    queryFn: () => server.instances(namespace).list({ prefix, limit: INSTANCES_SHOWN }),
  });
  return (
    <Autocomplete
      aria-label="Instance"
      placeholder="Instance"
      data={(list.data?.items ?? []).map(({ id }) => id)}
      value={text}
      onChange={setText}
      onOptionSubmit={onChoose}
      onKeyDown={(event) => {
        if (event.key === "Enter" && text !== "") onChoose(text);
      }}
    />
  );
}
