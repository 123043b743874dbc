import { Anchor, Pill } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Reference } from "../../../api/resources.ts";
import type { TableAddress } from "../address.ts";
import { useTitlesOf } from "../titles.ts";
import { FieldGroup, type FieldGroupProps } from "./field-group.tsx";
import { ReferenceInput, useReferenceTarget } from "./reference.tsx";

interface ReferencesInputProps extends FieldGroupProps {
  address: TableAddress;
  references: Reference;
  /** The ids as JSON; empty for none. */
  value: string;
  readOnly: boolean;
  onChange(value: string): void;
}

/** Returns the ids of a JSON text. */
function idsOf(value: string): string[] {
  const ids: unknown = value === "" ? [] : JSON.parse(value);
  return Array.isArray(ids) ? ids.map(String) : [];
}

/** Input for the ids of several records: each is a chip with its title, and the next one is searched for. */
export function ReferencesInput(props: ReferencesInputProps) {
  const { label, address, references, value, error, readOnly, withAsterisk, onChange } = props;
  const [searched, setSearched] = useState("");
  const ids = idsOf(value);
  const titles = useTitlesOf(address, references, ids);
  const targetOf = useReferenceTarget(address);
  const change = (next: readonly string[]): void => onChange(JSON.stringify(next, null, 2));
  const add = (id: string): void => {
    setSearched("");
    if (id.trim() !== "" && !ids.includes(id)) change([...ids, id]);
  };
  return (
    <FieldGroup label={label} error={error} withAsterisk={withAsterisk}>
      {ids.length === 0 ? null : (
        <Pill.Group mb={6}>
          {ids.map((id) => {
            const target = targetOf(references, id);
            const text = titles.get(id) ?? id;
            return (
              <Pill
                key={id}
                title={id}
                withRemoveButton={!readOnly}
                removeButtonProps={{ "aria-label": `Remove ${text}`, "aria-hidden": false, tabIndex: 0 }}
                onRemove={() => change(ids.filter((one) => one !== id))}
              >
                {target === null ? (
                  text
                ) : (
                  <Anchor size="xs" c="inherit" component={Link} {...target}>
                    {text}
                  </Anchor>
                )}
              </Pill>
            );
          })}
        </Pill.Group>
      )}
      {readOnly ? null : (
        <ReferenceInput
          aria-label={`Add to ${label}`}
          placeholder={`Add a record of ${references.table}`}
          address={address}
          references={references}
          value={searched}
          // A search that was left is no id.
          onChange={setSearched}
          onPick={add}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            add(searched.trim());
          }}
        />
      )}
    </FieldGroup>
  );
}
