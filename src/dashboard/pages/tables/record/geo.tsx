import { Group, TextInput } from "@mantine/core";
import { useState } from "react";
import { isNumber } from "../grid/cell-text.tsx";
import { FieldGroup, type FieldGroupProps } from "./field-group.tsx";

interface GeoInputProps extends FieldGroupProps {
  /** The point as JSON; empty for none. */
  value: string;
  readOnly: boolean;
  onChange(value: string): void;
}

const PARTS = { lat: "latitude", lng: "longitude" } as const;
type Texts = Record<keyof typeof PARTS, string>;

/** Input for a point: two numbers in degrees. */
export function GeoInput({ label, value, error, readOnly, withAsterisk, onChange }: GeoInputProps) {
  /** The typed texts with the value that they have: the text `48.` is not that of the number 48. */
  const [typed, setTyped] = useState<{ texts: Texts; value: string } | null>(null);
  const texts = typed !== null && typed.value === value ? typed.texts : textsOf(value);
  const change = (part: keyof Texts, text: string): void => {
    const next = { ...texts, [part]: text };
    const json = jsonOf(next);
    setTyped({ texts: next, value: json });
    onChange(json);
  };
  return (
    <FieldGroup label={label} error={error} withAsterisk={withAsterisk}>
      <Group gap="xs" grow>
        {(["lat", "lng"] as const).map((part) => (
          <TextInput
            key={part}
            aria-label={`${label}: ${PARTS[part]}`}
            placeholder={PARTS[part]}
            inputMode="decimal"
            value={texts[part]}
            readOnly={readOnly}
            error={error !== null}
            onChange={(event) => change(part, event.currentTarget.value)}
          />
        ))}
      </Group>
    </FieldGroup>
  );
}

function textsOf(value: string): Texts {
  if (value === "") return { lat: "", lng: "" };
  const { lat, lng } = JSON.parse(value) as { lat?: unknown; lng?: unknown };
  const textOf = (part: unknown): string => (part === null || part === undefined ? "" : String(part));
  return { lat: textOf(lat), lng: textOf(lng) };
}

/** Returns the point as the form sends it. What is no number stays a text, which the server names. */
function jsonOf(texts: Texts): string {
  if (texts.lat.trim() === "" && texts.lng.trim() === "") return "";
  const numberOf = (text: string): unknown => {
    if (text.trim() === "") return null;
    return isNumber(text) ? Number(text) : text;
  };
  return JSON.stringify({ lat: numberOf(texts.lat), lng: numberOf(texts.lng) }, null, 2);
}
