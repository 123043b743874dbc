import { Button, Group, Input, Select, Skeleton, Stack, TagsInput, Text } from "@mantine/core";
import { lazy, Suspense, type SyntheticEvent, useState } from "react";
import { type TableSchema, useResources } from "../../../api/resources.ts";
import type { TableAddress } from "../address.ts";
import type { Edit } from "./source.ts";

/** Loaded when shown: its editor is larger than the page of a table. */
const RuleEditor = lazy(() => import("./rule-editor.tsx"));
const EDITOR_PX = 60;

export const ACTIONS = ["read", "insert", "update", "delete"] as const;
export type Action = (typeof ACTIONS)[number];

const TEMPLATES = [
  { value: "nobody", label: "Nobody, but service keys" },
  { value: "public", label: "Everybody" },
  { value: "signedIn", label: "Signed-in users, anonymous ones too" },
  { value: "owner", label: "The owner" },
  { value: "members", label: "Members, listed in another table" },
  { value: "source", label: "A function" },
];

const PARAMETERS: Readonly<Record<Action, string>> = {
  read: "(auth)",
  insert: "(auth, record)",
  update: "(auth, record, next)",
  delete: "(auth, record)",
};

interface Inputs {
  template: string;
  field: string | null;
  table: string | null;
  userField: string | null;
  memberField: string | null;
  recordField: string | null;
  roleField: string | null;
  roles: string[];
  source: string;
}

/** Returns the edit that the inputs of a rule's form ask for. */
function editOf(address: TableAddress, action: Action, inputs: Inputs): Edit {
  const { namespace, table } = address;
  const edit = { do: "setRule", namespace, table, rule: action };
  const { template, memberField, recordField, roleField } = inputs;
  if (template === "source") return { ...edit, source: inputs.source };
  if (template === "owner") return { ...edit, template, options: { field: inputs.field } };
  if (template !== "members") return { ...edit, template };
  const isMatched = memberField !== null && recordField !== null;
  const options = {
    table: inputs.table,
    userField: inputs.userField,
    ...(isMatched ? { match: { [memberField]: recordField } } : {}),
    ...(roleField === null ? {} : { roleField, roles: inputs.roles }),
  };
  return { ...edit, template, options };
}

/** The form of a rule: a template with its options, or a function. */
export function RuleForm({
  address,
  schema,
  action,
  present,
  onSubmit,
}: {
  address: TableAddress;
  schema: TableSchema;
  action: Action;
  /** The rule's text as it runs; undefined for none. */
  present: string | undefined;
  onSubmit(edit: Edit): void;
}) {
  const [inputs, setInputs] = useState<Inputs>({
    template: present === undefined ? "nobody" : present === "true" ? "public" : "source",
    field: null,
    table: null,
    userField: null,
    memberField: null,
    recordField: null,
    roleField: null,
    roles: [],
    source: present ?? `${PARAMETERS[action]} => false`,
  });
  const set = (changes: Partial<Inputs>): void => setInputs({ ...inputs, ...changes });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onSubmit(editOf(address, action, inputs));
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Select
          label={`Who may ${action}`}
          data={TEMPLATES}
          allowDeselect={false}
          value={inputs.template}
          onChange={(template) => template !== null && set({ template })}
        />
        {inputs.template === "owner" ? (
          <Select
            label="Field with the owner's id"
            required
            data={textFields(schema)}
            value={inputs.field}
            onChange={(field) => set({ field })}
          />
        ) : null}
        {inputs.template === "members" ? <Members address={address} schema={schema} inputs={inputs} set={set} /> : null}
        {inputs.template === "source" ? (
          <Input.Wrapper
            label="Function"
            description={`true, false, or one function ${PARAMETERS[action]}; what it returns allows if it is true or a filter`}
            labelElement="div"
          >
            <Suspense fallback={<Skeleton height={EDITOR_PX} />}>
              <RuleEditor
                label={`The rule of ${action}`}
                fields={schema.fields}
                value={inputs.source}
                onChange={(source) => set({ source })}
              />
            </Suspense>
          </Input.Wrapper>
        ) : null}
        <Group>
          <Button type="submit">Review</Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Returns the fields that may hold ids of users. */
const textFields = ({ fields }: TableSchema): string[] =>
  Object.entries(fields).flatMap(([name, { type, enum: choices, generated }]) =>
    (type === "string" || type === "text") && choices === undefined && (!generated || name === "id") ? [name] : [],
  );

interface PartProps {
  schema: TableSchema;
  inputs: Inputs;
  set(changes: Partial<Inputs>): void;
}

function Members({ address, schema, inputs, set }: PartProps & { address: TableAddress }) {
  const tables = useResources().data?.namespaces[address.namespace]?.tables ?? {};
  const members = inputs.table === null ? undefined : tables[inputs.table];
  const choice = (label: string, name: "userField" | "memberField" | "recordField" | "roleField", data: string[]) => (
    <Select
      label={label}
      required={name === "userField"}
      clearable={name !== "userField"}
      data={data}
      value={inputs[name]}
      onChange={(value) => set({ [name]: value })}
    />
  );
  return (
    <>
      <Select
        label="Table of members"
        required
        data={Object.keys(tables)}
        value={inputs.table}
        onChange={(table) => set({ table, userField: null, memberField: null, roleField: null })}
      />
      {members === undefined ? null : (
        <>
          {choice("Its field with the user's id", "userField", textFields(members))}
          <Text size="sm" c="dimmed">
            Leave both empty where every member has the right in all records.
          </Text>
          {choice("Its field that says of what", "memberField", textFields(members))}
          {choice("The same in this table", "recordField", textFields(schema))}
          {choice("Its field with the role", "roleField", Object.keys(members.fields))}
          {inputs.roleField === null ? null : (
            <TagsInput label="Roles that may" required value={inputs.roles} onChange={(roles) => set({ roles })} />
          )}
        </>
      )}
    </>
  );
}
