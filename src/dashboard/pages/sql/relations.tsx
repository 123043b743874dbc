import { NavLink, ScrollArea, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { IconEye, IconSearch, IconTable } from "../../parts/icons.tsx";
import { Loadable } from "../../parts/states.tsx";
import { useRelations } from "./statements.ts";
import type { SqlTarget } from "./target.tsx";

const SEARCHED_FROM = 8;

/** Tables and views of a database; each expands to its columns, and a click inserts a name. */
export function Relations({ target, onInsert }: { target: SqlTarget; onInsert(name: string): void }) {
  const relations = useRelations(target);
  const [q, setQ] = useState("");
  return (
    <section className="sql-relations" aria-label="Tables of the database">
      <Loadable query={relations} rows={4}>
        {(all) =>
          all.length === 0 ? (
            <Text size="sm" c="dimmed" p="xs">
              {target.isReadOnly ? (
                "This namespace has no tables."
              ) : (
                <>
                  No tables yet. Make one: <code>CREATE TABLE films (title TEXT)</code>
                </>
              )}
            </Text>
          ) : (
            <>
              {all.length < SEARCHED_FROM ? null : (
                <TextInput
                  aria-label="Search tables"
                  placeholder="Tables"
                  size="xs"
                  m={6}
                  leftSection={<IconSearch size={14} aria-hidden />}
                  value={q}
                  onChange={(event) => setQ(event.currentTarget.value)}
                />
              )}
              <ScrollArea flex={1} scrollbars="y" type="auto">
                {all
                  .filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()))
                  .map(({ name, kind, columns }) => (
                    <NavLink
                      key={name}
                      component="button"
                      py={5}
                      label={name}
                      title={name}
                      classNames={{ label: "sql-name" }}
                      leftSection={
                        kind === "view" ? <IconEye size={15} aria-hidden /> : <IconTable size={15} aria-hidden />
                      }
                    >
                      {columns.map((column) => (
                        <NavLink
                          key={column.name}
                          component="button"
                          py={2}
                          label={column.name}
                          title={`Insert ${column.name}`}
                          classNames={{ label: "sql-name" }}
                          rightSection={
                            <Text size="xs" c="dimmed" maw={80} truncate>
                              {column.type.toLowerCase()}
                            </Text>
                          }
                          onClick={() => onInsert(column.name)}
                        />
                      ))}
                    </NavLink>
                  ))}
              </ScrollArea>
            </>
          )
        }
      </Loadable>
    </section>
  );
}
