import { Anchor, Combobox, Loader, Text, TextInput, type TextInputProps, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { KeyboardEvent } from "react";
import { type Field, useResources } from "../../../api/resources.ts";
import { useRights } from "../../../api/session.tsx";
import { SEARCH_DELAY_MS } from "../../../limits.ts";
import { useServer, useViewAs } from "../../../shell/view-as.tsx";
import { keyOf, pageOf, pathOf, referredAt, type TableAddress } from "../address.ts";
import { cellText } from "../grid/cell-text.tsx";
import type { Row } from "../rows.ts";
import { titleOf, useTitlesOf } from "../titles.ts";

type References = NonNullable<Field["references"]>;

const FOUND_MAX = 8;
/** Returns a function for the link to a referenced record; null if the key may not read its table. */
export function useReferenceTarget(address: TableAddress) {
  const { may } = useRights();
  const as = useViewAs();
  return (references: References, value: string): { to: string; search: never } | null => {
    const { column } = references;
    const at = referredAt(address, references);
    if (!may("db", at.namespace, at.table, "read")) return null;
    const shown = column === "id" ? { record: value } : { filter: [[column, "==", value]] };
    // The page parses its own parameters.
    return { to: pageOf(at), search: { ...shown, ...(as === null ? {} : { as }) } as never };
  };
}

/** Link to the record that a field refers to, by its title. */
export function ReferenceLink({
  address,
  references,
  value,
}: {
  address: TableAddress;
  references: References;
  value: string;
}) {
  const target = useReferenceTarget(address)(references, value);
  const title = useTitlesOf(address, references, [value]).get(value);
  return target === null ? null : (
    <Anchor size="xs" component={Link} {...target} underline="always">
      {title === undefined ? "Open" : `Open ${title}`} in {references.table}
    </Anchor>
  );
}

/** Searches the referenced table by title or id. */
function useFound(address: TableAddress, references: References, text: string, isOpen: boolean) {
  const { column } = references;
  const server = useServer();
  const as = useViewAs();
  const target = referredAt(address, references);
  const schema = useResources().data?.namespaces[target.namespace]?.tables[target.table];
  const title = schema === undefined ? null : titleOf(schema);
  const [words] = useDebouncedValue(text.trim(), SEARCH_DELAY_MS);
  const found = useQuery({
    queryKey: [...keyOf(target), "found", as, column, words],
    enabled: isOpen,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const query = { limit: FOUND_MAX, total: false };
      const begins = [column, ...(title === null ? [] : [title])].map((field) => [field, "istartsWith", words]);
      const byBeginning = words === "" ? {} : { orFilter: JSON.stringify(begins) };
      const { items } = await server.request<{ items: Row[] }>("GET", pathOf(target), {
        query: { ...query, ...byBeginning },
        signal,
      });
      if (items.length > 0 || schema?.fts === null || schema === undefined) return items;
      const searched = { q: words, limit: FOUND_MAX };
      return (await server.request<{ items: Row[] }>("GET", `${pathOf(target)}/search`, { query: searched, signal }))
        .items;
    },
  });
  const options = found.data?.map((row) => ({
    value: String(row[column] ?? ""),
    title: title === null ? "" : cellText(row[title], schema?.fields[title]),
  }));
  return { options: options ?? [], error: found.error, isLoading: found.isFetching };
}

/** Input for the id of a record in another table, with search. */
export function ReferenceInput({
  address,
  references,
  value,
  onChange,
  onKeyDown,
  onPick,
  isOpenAtFirst = false,
  ...input
}: Omit<TextInputProps, "value" | "onChange" | "onKeyDown"> & {
  address: TableAddress;
  references: References;
  value: string;
  onChange(value: string): void;
  /** Called when an option is selected. */
  onPick?(value: string): void;
  /** Called for keys that select no option. */
  onKeyDown?(event: KeyboardEvent): void;
  isOpenAtFirst?: boolean;
}) {
  const combobox = useCombobox({ defaultOpened: isOpenAtFirst, onDropdownClose: () => combobox.resetSelectedOption() });
  const { options, error, isLoading } = useFound(address, references, value, combobox.dropdownOpened);
  const isReadOnly = input.readOnly === true;
  return (
    <Combobox
      store={combobox}
      width={320}
      position="bottom-start"
      onOptionSubmit={(chosen) => {
        onChange(chosen);
        combobox.closeDropdown();
        onPick?.(chosen);
      }}
    >
      <Combobox.Target>
        <TextInput
          {...input}
          value={value}
          rightSection={input.rightSection ?? (isLoading ? <Loader size={14} /> : undefined)}
          onChange={(event) => {
            onChange(event.currentTarget.value);
            combobox.openDropdown();
            combobox.resetSelectedOption();
          }}
          onFocus={() => {
            if (!isReadOnly) combobox.openDropdown();
          }}
          onBlur={(event) => {
            combobox.closeDropdown();
            input.onBlur?.(event);
          }}
          onKeyDown={(event) => {
            const chooses = combobox.dropdownOpened && combobox.getSelectedOptionIndex() !== -1;
            if (event.key === "Enter" && chooses) {
              event.stopPropagation();
              event.preventDefault();
            } else onKeyDown?.(event);
          }}
        />
      </Combobox.Target>
      <Combobox.Dropdown hidden={isReadOnly}>
        <Combobox.Options aria-label="Suggestions">
          {options.map((option) => (
            <Combobox.Option key={option.value} value={option.value}>
              {option.title === "" ? null : (
                <Text size="sm" truncate>
                  {option.title}
                </Text>
              )}
              <Text size="xs" c="dimmed" ff="monospace" truncate>
                {option.value}
              </Text>
            </Combobox.Option>
          ))}
          {options.length > 0 ? null : (
            <Combobox.Empty>
              {error !== null
                ? "The table cannot be searched"
                : isLoading
                  ? "Searching…"
                  : `No record of ${references.table} begins so`}
            </Combobox.Empty>
          )}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}
