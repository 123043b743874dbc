import { ActionIcon, Button, Group, Menu } from "@mantine/core";
import { useState } from "react";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { IconDotsVertical, IconPlus } from "../../../parts/icons.tsx";
import type { TableAddress } from "../address.ts";
import { FieldForm } from "./field-form.tsx";
import { changesOf, inputsOf, NEW_FIELD, specOf } from "./field-model.ts";
import { EditDialog } from "./review.tsx";
import { type Action, RuleForm } from "./rule-form.tsx";
import { FieldsForm, NameForm } from "./small-forms.tsx";
import type { Edit, Source } from "./source.ts";
import { Undo } from "./undo.tsx";

interface OfTable {
  address: TableAddress;
  schema: TableSchema;
  source: Source;
}

const placeOf = ({ namespace, table }: TableAddress) => ({ namespace, table });

/** Buttons that add to a table: fields, indexes, search. */
export function TableActions({ address, schema, source }: OfTable) {
  const [open, setOpen] = useState<"field" | "addIndex" | "setFts" | null>(null);
  const close = (): void => setOpen(null);
  return (
    <Group gap="xs">
      {schema.schemaless ? null : (
        <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setOpen("field")}>
          New field
        </Button>
      )}
      <Button variant="default" onClick={() => setOpen("addIndex")}>
        New index
      </Button>
      <Button variant="default" onClick={() => setOpen("setFts")}>
        Searched fields
      </Button>
      <Undo source={source} />
      {open === "field" ? (
        <EditDialog
          title={`New field of ${address.table}`}
          source={source}
          onClose={close}
          form={(review) => (
            <FieldForm
              address={address}
              first={NEW_FIELD}
              isNew
              onSubmit={(inputs) =>
                review([{ do: "addField", ...placeOf(address), field: inputs.name, spec: specOf(inputs) }])
              }
            />
          )}
        />
      ) : null}
      {open === "addIndex" || open === "setFts" ? (
        <EditDialog
          title={open === "addIndex" ? `New index of ${address.table}` : `Searched fields of ${address.table}`}
          source={source}
          onClose={close}
          form={(review) => (
            <FieldsForm address={address} schema={schema} kind={open} onSubmit={(edit) => review([edit])} />
          )}
        />
      ) : null}
    </Group>
  );
}

/** Menu of a field: change it, or remove it with its values. */
export function FieldMenu({ address, name, field, source }: Omit<OfTable, "schema"> & { name: string; field: Field }) {
  const [open, setOpen] = useState<"change" | "remove" | null>(null);
  const first = inputsOf(name, field);
  return (
    <>
      <Menu position="bottom-end" shadow="md">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Change ${name}`}>
            <IconDotsVertical size={16} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setOpen("change")}>Change</Menu.Item>
          <Menu.Item color="red" onClick={() => setOpen("remove")}>
            Remove
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {open === null ? null : (
        <EditDialog
          title={open === "change" ? `Field ${name}` : `Remove ${name} and its values`}
          source={source}
          onClose={() => setOpen(null)}
          form={(review) =>
            open === "change" ? (
              <FieldForm
                address={address}
                first={first}
                isNew={false}
                onSubmit={(inputs) =>
                  review([
                    {
                      do: "setField",
                      ...placeOf(address),
                      field: name,
                      changes: changesOf(specOf(first), specOf(inputs)),
                    },
                  ])
                }
              />
            ) : (
              <Button color="red" onClick={() => review([{ do: "removeField", ...placeOf(address), field: name }])}>
                Review
              </Button>
            )
          }
        />
      )}
    </>
  );
}

/** Button that changes a rule. */
export function RuleAction({
  address,
  schema,
  source,
  action,
  present,
}: OfTable & { action: Action; present: string | undefined }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button
        size="compact-xs"
        variant="subtle"
        aria-label={`Change the rule of ${action}`}
        onClick={() => setIsOpen(true)}
      >
        Change
      </Button>
      {isOpen ? (
        <EditDialog
          title={`Who may ${action} in ${address.table}`}
          source={source}
          onClose={() => setIsOpen(false)}
          form={(review) => (
            <RuleForm
              address={address}
              schema={schema}
              action={action}
              present={present}
              onSubmit={(edit) => review([edit])}
            />
          )}
        />
      ) : null}
    </>
  );
}

const KINDS = {
  table: { title: "New table", label: "Name", hint: "In URLs and code; without rules nobody may read or write it" },
  namespace: { title: "New namespace", label: "Name", hint: "One SQLite file with tables of its own" },
  bucket: { title: "New bucket", label: "Name", hint: "In URLs and code; without rules nobody may read or write it" },
} as const;

/** Button that adds a table, a namespace or a bucket. */
export function NewAction({
  kind,
  source,
  namespace = "",
  variant = "default",
}: {
  kind: keyof typeof KINDS;
  source: Source;
  /** The namespace of a table. */
  namespace?: string;
  variant?: "default" | "subtle";
}) {
  const [isOpen, setIsOpen] = useState(false);
  const { title, label, hint } = KINDS[kind];
  const editOf = (name: string, instance: boolean): Edit => {
    if (kind === "table") return { do: "addTable", namespace, table: name };
    if (kind === "bucket") return { do: "addBucket", bucket: name };
    return { do: "addNamespace", namespace: name, ...(instance ? { instance } : {}) };
  };
  return (
    <>
      <Button
        variant={variant}
        size={variant === "subtle" ? "compact-sm" : "sm"}
        leftSection={<IconPlus size={16} aria-hidden />}
        onClick={() => setIsOpen(true)}
      >
        {title}
      </Button>
      {isOpen ? (
        <EditDialog
          title={namespace === "" ? title : `${title} in ${namespace}`}
          source={source}
          onClose={() => setIsOpen(false)}
          form={(review) => (
            <NameForm
              label={label}
              hint={hint}
              hasInstances={kind === "namespace"}
              onSubmit={(name, isInstance) => review([editOf(name, isInstance)])}
            />
          )}
        />
      ) : null}
    </>
  );
}
