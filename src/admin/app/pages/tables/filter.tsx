import { Button, Group, Pill, Popover, Select, Stack, TextInput } from "@mantine/core";
import { IconFilter } from "@tabler/icons-react";
import { type SyntheticEvent, useState } from "react";
import type { TableSchema } from "../../api/resources.ts";
import { type Condition, type Operator, operatorsOf, textOf, typedValue } from "./filter-model.ts";

interface FilterProps {
  schema: TableSchema;
  filter: readonly Condition[];
  onChange(filter: readonly Condition[]): void;
}

/** Adds a condition: a field, an operator and a value. */
export function FilterButton({ schema, filter, onChange }: FilterProps) {
  const names = Object.keys(schema.fields);
  const [isOpen, setIsOpen] = useState(false);
  const [name, setName] = useState(names[0] ?? "id");
  const [operator, setOperator] = useState<Operator>("==");
  const [text, setText] = useState("");
  const field = schema.fields[name] ?? { type: "string" as const };
  const operators = operatorsOf(field);
  const used = operators.includes(operator) ? operator : "==";
  const options = field.type === "boolean" ? ["true", "false"] : "enum" in field ? field.enum?.map(String) : undefined;
  const isOne = used === "==" || used === "!=";
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    onChange([...filter, [name, used, typedValue(text, used, field)]]);
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
                description={used === "in" || used === "not in" ? "Separated by commas" : undefined}
              />
            )}
            <Button type="submit">Apply</Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

/** The conditions that hold now. Each can be removed. */
export function Conditions({ filter, onChange }: Omit<FilterProps, "schema">) {
  if (filter.length === 0) return null;
  return (
    <Group gap={6}>
      {filter.map((condition) => {
        const text = `${condition[0]} ${condition[1]} ${textOf(condition[2])}`;
        return (
          <Pill
            key={text}
            withRemoveButton
            removeButtonProps={{ "aria-label": `Remove the condition ${text}`, tabIndex: 0 }}
            onRemove={() => onChange(filter.filter((other) => other !== condition))}
          >
            {text}
          </Pill>
        );
      })}
    </Group>
  );
}
