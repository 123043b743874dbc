import { Button, Checkbox, Group, Select, SimpleGrid, Stack, TagsInput, TextInput } from "@mantine/core";
import { type SyntheticEvent, useState } from "react";
import { useResources } from "../../../api/resources.ts";
import type { TableAddress } from "../address.ts";
import { type FieldInputs, type FormType, hasBounds, isText, refers, TYPES } from "./field-model.ts";

/** The form of a field. `isNew`: its name can be chosen. */
export function FieldForm({
  address,
  first,
  isNew,
  onSubmit,
}: {
  address: TableAddress;
  first: FieldInputs;
  isNew: boolean;
  onSubmit(inputs: FieldInputs): void;
}) {
  const [inputs, setInputs] = useState(first);
  const set = (changes: Partial<FieldInputs>): void => setInputs({ ...inputs, ...changes });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onSubmit(inputs);
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            label="Name"
            required
            readOnly={!isNew}
            data-autofocus={isNew}
            value={inputs.name}
            onChange={({ currentTarget }) => set({ name: currentTarget.value })}
          />
          <Select
            label="Type"
            data={TYPES}
            allowDeselect={false}
            value={inputs.type}
            onChange={(type) => type !== null && set({ type: type as FormType })}
          />
        </SimpleGrid>
        <OfType address={address} inputs={inputs} set={set} isNew={isNew} />
        <Group gap="lg">
          {inputs.type === "references" ? null : (
            <Checkbox
              label="Required"
              checked={inputs.required}
              onChange={({ currentTarget }) => set({ required: currentTarget.checked })}
            />
          )}
          {["references", "file", "geo"].includes(inputs.type) ? null : (
            <Checkbox
              label="Unique"
              checked={inputs.unique}
              onChange={({ currentTarget }) => set({ unique: currentTarget.checked })}
            />
          )}
          <Checkbox
            label="Fixed after the insert"
            checked={inputs.fixed}
            onChange={({ currentTarget }) => set({ fixed: currentTarget.checked })}
          />
        </Group>
        <Group>
          <Button type="submit">Review</Button>
        </Group>
      </Stack>
    </form>
  );
}

interface PartProps {
  address: TableAddress;
  inputs: FieldInputs;
  set(changes: Partial<FieldInputs>): void;
}

/** The inputs that the chosen type has. */
function OfType({ address, inputs, set, isNew }: PartProps & { isNew: boolean }) {
  const { type } = inputs;
  if (refers(type)) return <Target address={address} inputs={inputs} set={set} />;
  if (type === "file") return <Files inputs={inputs} set={set} isNew={isNew} />;
  return (
    <>
      {hasBounds(type) ? (
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            label={isText(type) ? "Characters at least" : "At least"}
            inputMode="decimal"
            value={inputs.min}
            onChange={({ currentTarget }) => set({ min: currentTarget.value })}
          />
          <TextInput
            label={isText(type) ? "Characters at most" : "At most"}
            inputMode="decimal"
            value={inputs.max}
            onChange={({ currentTarget }) => set({ max: currentTarget.value })}
          />
        </SimpleGrid>
      ) : null}
      {hasBounds(type) ? (
        <TagsInput
          label="Only these values"
          description="Enter after each; any value without one"
          value={inputs.choices}
          onChange={(choices) => set({ choices })}
        />
      ) : null}
      {type === "geo" ? null : (
        <TextInput
          label="Default"
          description={type === "json" ? "As JSON" : "The value of new records that have none"}
          value={inputs.fallback}
          onChange={({ currentTarget }) => set({ fallback: currentTarget.value })}
        />
      )}
    </>
  );
}

/** Actions on a record whose reference is deleted, with their names. */
const ON_DELETE = [
  { value: "restrict", label: "cannot be deleted while it is referred to" },
  { value: "cascade", label: "takes the records that refer to it with it" },
  { value: "setNull", label: "leaves the field empty" },
];
const ON_DELETE_OF_SEVERAL = [
  { value: "remove", label: "goes from the list" },
  { value: "restrict", label: "cannot be deleted while it is referred to" },
];

function Target({ address, inputs, set }: PartProps) {
  const tables = useResources().data?.namespaces[address.namespace]?.tables ?? {};
  const names = Object.entries(tables).flatMap(([name, { view }]) => (view === true ? [] : [name]));
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      <Select
        label="Refers to"
        required
        data={names}
        value={inputs.refersTo === "" ? null : inputs.refersTo}
        onChange={(refersTo) => set({ refersTo: refersTo ?? "" })}
      />
      <Select
        label="A record referred to"
        placeholder={inputs.type === "references" ? "goes from the list" : "cannot be deleted"}
        data={inputs.type === "references" ? ON_DELETE_OF_SEVERAL : ON_DELETE}
        clearable
        value={inputs.onDelete === "" ? null : inputs.onDelete.replace("set null", "setNull")}
        onChange={(onDelete) => set({ onDelete: onDelete ?? "" })}
      />
    </SimpleGrid>
  );
}

function Files({ inputs, set, isNew }: Omit<PartProps, "address"> & { isNew: boolean }) {
  const buckets = useResources().data?.buckets ?? [];
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }}>
      <Select
        label="Bucket"
        required={isNew}
        placeholder={isNew ? "" : "as it is"}
        data={buckets.map(({ name }) => name)}
        value={inputs.bucket === "" ? null : inputs.bucket}
        onChange={(bucket) => set({ bucket: bucket ?? "" })}
      />
      <TextInput
        label="Files at most"
        placeholder="one"
        inputMode="numeric"
        value={inputs.many}
        onChange={({ currentTarget }) => set({ many: currentTarget.value })}
      />
      <TextInput
        label="Bytes of a file at most"
        inputMode="numeric"
        value={inputs.max}
        onChange={({ currentTarget }) => set({ max: currentTarget.value })}
      />
    </SimpleGrid>
  );
}
