import { Loader, Popover, Select, Text, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { type Field, referenceOf } from "../../../api/resources.ts";
import { messageOf } from "../../../api/server.ts";
import { textHeight } from "../../../parts/json.tsx";
import type { TableAddress } from "../address.ts";
import { ReferenceInput } from "../record/reference.tsx";
import { editText, isJsonText, parsed } from "./cell-text.tsx";

interface EditorProps {
  address: TableAddress;
  name: string;
  field: Field;
  value: unknown;
  /** Saves a value. Resolves when the server has accepted it. */
  save(value: unknown): Promise<void>;
  close(): void;
}

/** Edits one cell in place: Enter saves, Escape cancels, and a refusal by the server is shown at the cell. */
export function CellEditor({ address, name, field: declared, value, save, close }: EditorProps) {
  const field = isOf(value, declared) ? declared : { ...declared, type: "json" as const };
  const [text, setText] = useState(() => editText(value, field));
  const [problem, setProblem] = useState<string | null>(null);
  const [isSaving, setIsSaving] = useState(false);
  const isOpen = useIsOpen();

  const submit = async (next: string): Promise<void> => {
    if (isSaving) return;
    if (next === editText(value, field)) return close();
    setIsSaving(true);
    try {
      await save(parsed(next, field, value));
      // Another cell may be in edit mode by now.
      if (isOpen()) close();
    } catch (error) {
      if (!isOpen()) notifications.show({ color: "red", title: `${name} was not saved`, message: messageOf(error) });
      setProblem(messageOf(error));
      setIsSaving(false);
    }
  };
  const options = field.type === "boolean" ? ["true", "false"] : field.enum?.map(String);
  const references = referenceOf(field);
  const isMany = isJsonText(field) || field.type === "text" || editText(value, field).includes("\n");
  const onKeyDown = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    // In multi-line texts Shift+Enter inserts a line break; in options Enter selects one.
    if (event.key === "Enter" && !event.shiftKey && options === undefined) {
      event.preventDefault();
      void submit(text);
    }
  };
  const common = {
    "aria-label": name,
    autoFocus: true,
    size: "xs" as const,
    // A disabled input would lose the focus.
    readOnly: isSaving,
    onKeyDown,
    onBlur: () => {
      if (problem === null && !isSaving && text === editText(value, field)) close();
    },
    rightSection: isSaving ? <Loader size={14} /> : undefined,
    error: problem !== null,
  };
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
              // Enter on the current option would clear the field.
              allowDeselect={false}
              onOptionSubmit={(chosen) => chosen === text && close()}
              defaultDropdownOpened
              comboboxProps={{ withinPortal: true }}
              onChange={(next) => {
                setText(next ?? "");
                void submit(next ?? "");
              }}
            />
          ) : references !== undefined ? (
            <ReferenceInput
              {...common}
              address={address}
              references={references}
              isOpenAtFirst
              value={text}
              onChange={setText}
              onPick={(picked) => void submit(picked)}
            />
          ) : isMany ? (
            <Textarea
              {...common}
              {...textHeight(text, 3, 12)}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
            />
          ) : (
            <TextInput {...common} value={text} onChange={(event) => setText(event.currentTarget.value)} />
          )}
        </div>
      </Popover.Target>
      <Popover.Dropdown role="alert">
        <Text size="sm" c="var(--mantine-color-error)">
          {problem}
        </Text>
      </Popover.Dropdown>
    </Popover>
  );
}

/** Returns whether the component is still mounted, for later responses. */
function useIsOpen(): () => boolean {
  const isOpen = useRef(true);
  useEffect(() => {
    isOpen.current = true;
    return () => {
      isOpen.current = false;
    };
  }, []);
  return () => isOpen.current;
}

const TYPES: Readonly<Record<Exclude<Field["type"], "json" | "references" | "file">, string>> = {
  string: "string",
  text: "string",
  date: "string",
  datetime: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
  geo: "object",
};

/** Returns whether a value has the type of the field. In a table without a schema, records may differ from the first ones. */
const isOf = (value: unknown, { type }: Field): boolean =>
  value === null ||
  value === undefined ||
  type === "json" ||
  type === "file" ||
  (type === "references" ? Array.isArray(value) : typeof value === TYPES[type]);
