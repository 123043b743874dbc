import { ActionIcon, TextInput, type TextInputProps } from "@mantine/core";
import { useRef } from "react";
import { timeText } from "../../../parts/format.ts";
import { IconCalendar } from "../../../parts/icons.tsx";

interface TimeInputProps extends Omit<TextInputProps, "value" | "onChange"> {
  /** The stored text, any ISO 8601 time. */
  value: string;
  onChange(value: string): void;
}

/** A date and time: as text, or picked in the browser's calendar, in local time. What is picked is stored in UTC. */
export function TimeInput({ value, onChange, ...input }: TimeInputProps) {
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

/** `2026-01-31T13:00:00`, in the time zone of the browser. */
function localText(date: Date): string {
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}
