import { Loader, Popover, Select, Text, Textarea, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { messageOf } from "../../../api/failure.ts";
import type { Field } from "../../../api/resources.ts";
import type { TableAddress } from "../address.ts";
import { ReferenceInput } from "../record/reference.tsx";
import { editText, parsed } from "./cell-text.ts";

interface EditorProps {
  address: TableAddress;
  name: string;
  field: Field;
  value: unknown;
  /** Resolves when the server has taken the value. */
  save(value: unknown): Promise<void>;
  close(): void;
}

/** Edits one cell in its place: Enter saves, Escape cancels, and what the server refuses is said at the cell. */
export function CellEditor({ address, name, field, value, save, close }: EditorProps) {
  const [text, setText] = useState(() => editText(value, field));
  const [problem, setProblem] = useState<string | null>(null);
  const [isSaving, setIsSaving] = useState(false);

  const submit = async (next: string): Promise<void> => {
    if (next === editText(value, field)) return close();
    setIsSaving(true);
    try {
      await save(parsed(next, field));
      close();
    } catch (error) {
      setProblem(messageOf(error));
      setIsSaving(false);
    }
  };
  const isMany = field.type === "json" || field.type === "text";
  const onKeyDown = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    // In a text of many lines Shift+Enter begins the next one.
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      void submit(text);
    }
  };
  const common = {
    "aria-label": name,
    autoFocus: true,
    size: "xs" as const,
    disabled: isSaving,
    onKeyDown,
    onBlur: () => {
      if (problem === null && !isSaving && text === editText(value, field)) close();
    },
    rightSection: isSaving ? <Loader size={14} /> : undefined,
    error: problem !== null,
  };
  const options = field.type === "boolean" ? ["true", "false"] : field.enum?.map(String);
  return (
    <Popover opened={problem !== null} position="bottom-start" width={280} withArrow>
      <Popover.Target>
        <div className="cell-editor">
          {options !== undefined ? (
            <Select
              {...common}
              data={options}
              value={text === "" ? null : text}
              clearable={!field.required}
              defaultDropdownOpened
              comboboxProps={{ withinPortal: true }}
              onChange={(next) => {
                setText(next ?? "");
                void submit(next ?? "");
              }}
            />
          ) : field.references !== undefined ? (
            <ReferenceInput
              {...common}
              address={address}
              references={field.references}
              isOpenAtFirst
              value={text}
              onChange={setText}
              onPick={(picked) => void submit(picked)}
            />
          ) : isMany ? (
            <Textarea
              {...common}
              autosize
              minRows={3}
              maxRows={12}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
          ) : (
            <TextInput {...common} value={text} onChange={(event) => setText(event.currentTarget.value)} />
          )}
        </div>
      </Popover.Target>
      <Popover.Dropdown role="alert">
        <Text size="sm" c="red">
          {problem}
        </Text>
      </Popover.Dropdown>
    </Popover>
  );
}
