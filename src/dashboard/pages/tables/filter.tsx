import { Button, Group, Pill, Popover, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { type SyntheticEvent, useState } from "react";
import type { TableSchema } from "../../api/resources.ts";
import { SEARCH_DELAY_MS } from "../../limits.ts";
import { IconFilter, IconSearch } from "../../parts/icons.tsx";
import {
  type Condition,
  type Conditions,
  type Operator,
  operatorsOf,
  takesList,
  textOf,
  typedValue,
} from "./filter-model.ts";

interface FilterProps {
  schema: TableSchema;
  conditions: Conditions;
  onChange(conditions: Conditions): void;
}

/** Button that adds a condition: a field, an operator and a value. */
export function FilterButton({ schema, conditions, onChange }: FilterProps) {
  const names = Object.keys(schema.fields);
  const [isOpen, setIsOpen] = useState(false);
  const [name, setName] = useState(names[0] ?? "id");
  const [operator, setOperator] = useState<Operator>("==");
  const [text, setText] = useState("");
  const [list, setList] = useState<keyof Conditions>("all");
  const field = schema.fields[name] ?? { type: "string" as const };
  const operators = operatorsOf(field);
  const used = operators.includes(operator) ? operator : "==";
  const options = field.type === "boolean" ? ["true", "false"] : "enum" in field ? field.enum?.map(String) : undefined;
  const isOne = used === "==" || used === "!=";
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const added: Condition = [name, used, typedValue(text, used, field)];
    const others = conditions[list].filter((condition) => JSON.stringify(condition) !== JSON.stringify(added));
    onChange({ ...conditions, [list]: [...others, added] });
    setText("");
    setIsOpen(false);
  };
  return (
    <Popover opened={isOpen} onChange={setIsOpen} position="bottom-start" width={320} trapFocus shadow="md">
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<IconFilter size={16} aria-hidden />}
          onClick={() => setIsOpen((before) => !before)}
        >
          Filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form onSubmit={submit}>
          <Stack gap="xs">
            <Select
              label="Field"
              openOnFocus={false}
              data={names}
              value={name}
              onChange={(next) => setName(next ?? name)}
              searchable
              allowDeselect={false}
              comboboxProps={{ withinPortal: false }}
            />
            <Select
              label="Operator"
              data={[...operators]}
              value={used}
              // The options are operators.
              onChange={(next) => setOperator((next ?? "==") as Operator)}
              allowDeselect={false}
              comboboxProps={{ withinPortal: false }}
            />
            {options !== undefined && isOne ? (
              <Select
                label="Value"
                data={[...options, "null"]}
                value={text === "" ? null : text}
                onChange={(next) => setText(next ?? "")}
                comboboxProps={{ withinPortal: false }}
              />
            ) : (
              <TextInput
                label="Value"
                value={text}
                onChange={(event) => setText(event.currentTarget.value)}
                description={takesList(used) ? "Separated by commas" : undefined}
              />
            )}
            <SegmentedControl
              aria-label="Match"
              size="xs"
              value={list}
              // The options are these two lists.
              onChange={(next) => setList(next as keyof Conditions)}
              data={[
                { value: "all", label: "Must match" },
                { value: "any", label: "One of several" },
              ]}
            />
            <Button type="submit">Apply</Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

/** Current conditions, each removable. */
export function ConditionList({ conditions, onChange }: Omit<FilterProps, "schema">) {
  const { all, any } = conditions;
  if (all.length + any.length === 0) return null;
  const without = (list: readonly Condition[], condition: Condition) => list.filter((other) => other !== condition);
  return (
    <Group gap={6}>
      {all.map((condition) => (
        <ConditionPill
          key={JSON.stringify(condition)}
          condition={condition}
          onRemove={() => onChange({ all: without(all, condition), any })}
        />
      ))}
      {any.length === 0 ? null : (
        <Text size="sm" c="dimmed">
          {all.length === 0 ? "one of" : "and one of"}
        </Text>
      )}
      {any.map((condition) => (
        <ConditionPill
          key={JSON.stringify(condition)}
          condition={condition}
          onRemove={() => onChange({ all, any: without(any, condition) })}
        />
      ))}
    </Group>
  );
}

function ConditionPill({ condition, onRemove }: { condition: Condition; onRemove(): void }) {
  const text = `${condition[0]} ${condition[1]} ${textOf(condition[2])}`;
  return (
    <Pill
      withRemoveButton
      maw="100%"
      // The component hides it from people without a mouse.
      removeButtonProps={{ "aria-label": `Remove the condition ${text}`, "aria-hidden": false, tabIndex: 0 }}
      onRemove={onRemove}
    >
      {condition[0]} {condition[1]} <bdi>{textOf(condition[2])}</bdi>
    </Pill>
  );
}

/** Debounced search input. */
export function SearchInput({
  placeholder = "Search",
  text,
  onChange,
}: {
  placeholder?: string;
  /** Initial text. */
  text: string;
  onChange(text: string): void;
}) {
  const later = useDebouncedCallback(onChange, SEARCH_DELAY_MS);
  return (
    <TextInput
      aria-label="Search"
      placeholder={placeholder}
      leftSection={<IconSearch size={16} aria-hidden />}
      defaultValue={text}
      onChange={(event) => later(event.currentTarget.value)}
      w={{ base: "100%", xs: 240 }}
    />
  );
}
