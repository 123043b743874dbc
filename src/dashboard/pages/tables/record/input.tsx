import { JsonInput, Select, Textarea, TextInput } from "@mantine/core";
import { useRef } from "react";
import type { Field } from "../../../api/resources.ts";
import { textHeight } from "../../../parts/text-height.ts";
import type { TableAddress } from "../address.ts";
import { ReferenceInput, ReferenceLink } from "./reference.tsx";
import { TimeInput } from "./time-input.tsx";

interface FieldInputProps {
  name: string;
  field: Field;
  address: TableAddress;
  text: string;
  /** As it is in the record; empty for a new one. */
  stored: string;
  problem: string | null;
  isReadOnly: boolean;
  onChange(text: string): void;
}

/** Whether it was a text of several lines at some time, from which an input of one line would remove the breaks. */
function useHasLines(text: string): boolean {
  const hasLines = useRef(false);
  hasLines.current ||= text.includes("\n");
  return hasLines.current;
}

/** The input for a field of a form. */
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
        // Who chooses what the field has already does not empty it.
        allowDeselect={false}
        onChange={(next) => onChange(next ?? "")}
      />
    );
  }
  if (field.type === "json") {
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
  const { references } = field;
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
      placeholder={placeholder}
      value={text}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
