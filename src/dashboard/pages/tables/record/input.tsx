import { ActionIcon, JsonInput, Select, Textarea, TextInput, type TextInputProps } from "@mantine/core";
import { useRef } from "react";
import { type Field, referenceOf, severalOf } from "../../../api/resources.ts";
import { timeText } from "../../../parts/format.tsx";
import { IconCalendar } from "../../../parts/icons.tsx";
import { textHeight } from "../../../parts/json.tsx";
import type { TableAddress } from "../address.ts";
import { isJsonText } from "../grid/cell-text.tsx";
import { GeoInput } from "./geo.tsx";
import { ReferenceInput, ReferenceLink } from "./reference.tsx";
import { ReferencesInput } from "./references.tsx";

interface TimeInputProps extends Omit<TextInputProps, "value" | "onChange"> {
  /** Stored text, any ISO 8601 time. */
  value: string;
  onChange(value: string): void;
}

/** Input for a date and time: as text, or from the browser's calendar in local time. A picked time is stored in UTC. */
function TimeInput({ value, onChange, ...input }: TimeInputProps) {
  const picker = useRef<HTMLInputElement>(null);
  const date = new Date(value);
  const isTime = value !== "" && !Number.isNaN(date.getTime());
  return (
    <TextInput
      {...input}
      value={value}
      placeholder={input.placeholder ?? "2026-01-31T12:00:00Z"}
      description={isTime ? timeText(value) : undefined}
      onChange={(event) => onChange(event.currentTarget.value)}
      rightSection={
        input.readOnly === true ? undefined : (
          <>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Pick ${typeof input.label === "string" ? input.label : "a time"}`}
              onClick={() => picker.current?.showPicker()}
            >
              <IconCalendar size={16} aria-hidden />
            </ActionIcon>
            <input
              ref={picker}
              type="datetime-local"
              step={1}
              tabIndex={-1}
              aria-hidden
              className="time-picker"
              value={isTime ? localText(date) : ""}
              onChange={(event) => {
                const picked = new Date(event.currentTarget.value);
                if (!Number.isNaN(picked.getTime())) onChange(picked.toISOString());
              }}
            />
          </>
        )
      }
    />
  );
}

/** Formats a time as `2026-01-31T13:00:00`, in the browser's time zone. */
function localText(date: Date): string {
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

interface FieldInputProps {
  name: string;
  field: Field;
  address: TableAddress;
  text: string;
  /** Value of the record; empty for a new one. */
  stored: string;
  problem: string | null;
  isReadOnly: boolean;
  onChange(text: string): void;
}

/** Returns whether the text ever had several lines, whose breaks a single-line input would remove. */
function useHasLines(text: string): boolean {
  const hasLines = useRef(false);
  hasLines.current ||= text.includes("\n");
  return hasLines.current;
}

/** Input for a field of a form. */
export function FieldInput({ name, field, address, text, stored, problem, isReadOnly, onChange }: FieldInputProps) {
  const hasLines = useHasLines(text);
  const common = {
    label: name,
    error: problem,
    readOnly: isReadOnly,
    withAsterisk: field.required && !field.generated,
    styles: { label: { overflowWrap: "anywhere" as const } },
  };
  const options = field.type === "boolean" ? ["true", "false"] : field.enum?.map(String);
  if (options !== undefined && !isReadOnly) {
    return (
      <Select
        {...common}
        data={options}
        value={text === "" ? null : text}
        clearable
        // Selecting the current option does not clear the field.
        allowDeselect={false}
        onChange={(next) => onChange(next ?? "")}
      />
    );
  }
  const several = severalOf(field);
  if (several !== undefined) {
    return <ReferencesInput {...common} address={address} references={several} value={text} onChange={onChange} />;
  }
  if (field.type === "geo") return <GeoInput {...common} value={text} onChange={onChange} />;
  if (isJsonText(field)) {
    return (
      <JsonInput
        validationError="This is no JSON"
        {...common}
        {...textHeight(text, 2, 16)}
        value={text}
        onChange={onChange}
      />
    );
  }
  if (field.type === "text" || hasLines) {
    return (
      <Textarea
        {...common}
        {...textHeight(text, 2, 12)}
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  const references = referenceOf(field);
  if (references !== undefined) {
    return (
      <ReferenceInput
        {...common}
        address={address}
        references={references}
        description={
          text === "" || text !== stored ? undefined : (
            <ReferenceLink address={address} references={references} value={text} />
          )
        }
        value={text}
        onChange={onChange}
      />
    );
  }
  if (field.type === "datetime" && !field.generated) {
    return <TimeInput {...common} value={text} onChange={onChange} />;
  }
  const placeholder = field.generated && !isReadOnly ? "Set by the server" : undefined;
  return (
    <TextInput
      {...common}
      // An input for dates shows a text that is no date as empty.
      type={field.type === "date" && /^(?:\d{4}-\d\d-\d\d)?$/.test(text) ? "date" : "text"}
      placeholder={placeholder}
      value={text}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
