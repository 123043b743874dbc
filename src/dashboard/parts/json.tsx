import { Button, Code, Group, JsonInput, Stack } from "@mantine/core";
import { type QueryKey, useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { describeFault, isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { jsonTextFault } from "../../kernel/json/text.ts";
import { messageOf, queries } from "../api/server.ts";
import { Problem } from "./states.tsx";

/** A value that was typed as JSON. Errors: `Error` that says what is wrong with `name`, numbers that would become others included. */
export function parseJson(text: string, name = "This"): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is no JSON`);
  }
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw new Error(describeFault(name, fault));
  return value;
}

/** A value as text of many lines. Long lines are broken. */
export const Json = ({ value }: { value: unknown }) => (
  <Code block className="wrapped">
    {JSON.stringify(value, null, 2)}
  </Code>
);

/**
 * An object that is edited as JSON. What was typed stays while what is stored changes, and saving writes the members that were
 * edited: somebody else may have changed the others since they were loaded.
 */
export function useObjectDraft(stored: JsonObject) {
  /** What was typed, and the object that it began as; null: nothing. */
  const [draft, setDraft] = useState<{ text: string; of: JsonObject } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const text = draft?.text ?? JSON.stringify(stored, null, 2);
  return {
    text,
    problem,
    isEdited: draft !== null,
    edit: (next: string): void => setDraft({ text: next, of: draft?.of ?? stored }),
    drop(): void {
      setDraft(null);
      setProblem(null);
    },
    /** What was typed; null, and a problem, where it is no object. */
    read(): JsonObject | null {
      const value = objectOf(text);
      setProblem(typeof value === "string" ? value : null);
      return typeof value === "string" ? null : value;
    },
    /** `present` with what was edited. */
    appliedTo(present: JsonObject, edited: JsonObject): JsonObject {
      const before = draft?.of ?? stored;
      const isEdited = ([name]: readonly [string, unknown]): boolean =>
        JSON.stringify(before[name]) !== JSON.stringify(edited[name]);
      const others = Object.entries(present).filter((member) => !isEdited(member));
      return Object.fromEntries([...others, ...Object.entries(edited).filter(isEdited)]);
    },
    /** Forgets what was typed up to the call that has saved it. */
    saved: (): void => setDraft((now) => (now === draft ? null : now)),
  };
}

/** What was typed, or what is wrong with it. */
function objectOf(text: string): JsonObject | string {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : "This is no JSON object";
  } catch (error) {
    return messageOf(error);
  }
}

interface MetadataFormProps {
  stored: JsonObject;
  /** Writes what `changed` makes of the metadata that there is by now. */
  save(changed: (present: JsonObject) => JsonObject): Promise<unknown>;
  /** What is loaded again after that. */
  queryKey: QueryKey;
  isWritable: boolean;
}

/** The metadata of one thing, as JSON that is edited in place. */
export function MetadataForm({ stored, save, queryKey, isWritable }: MetadataFormProps) {
  const draft = useObjectDraft(stored);
  const saving = useMutation({
    mutationFn: (edited: JsonObject) => save((present) => draft.appliedTo(present, edited)),
    onSuccess: () => queries.invalidateQueries({ queryKey }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const edited = draft.read();
    if (edited !== null) saving.mutate(edited, { onSuccess: draft.saved });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        <JsonInput
          label="Metadata"
          validationError="This is no JSON"
          {...textHeight(draft.text, 3, 14)}
          value={draft.text}
          onChange={draft.edit}
          readOnly={!isWritable}
          error={draft.problem}
        />
        <Problem of={saving.error} />
        {isWritable && draft.isEdited ? (
          <Group gap="xs">
            <Button size="xs" type="submit" loading={saving.isPending}>
              Save
            </Button>
            <Button size="xs" variant="default" onClick={draft.drop}>
              Cancel
            </Button>
          </Group>
        ) : null}
      </Stack>
    </form>
  );
}

/** A browser lays a text out to measure it, at each key: for a million characters that takes seconds. */
const MEASURED_MAX_CHARACTERS = 20_000;

/** The height of an input of many lines: as its text needs, between these numbers of rows; the highest for long texts. */
export const textHeight = (text: string, minRows: number, maxRows: number) =>
  text.length > MEASURED_MAX_CHARACTERS ? { rows: maxRows } : { autosize: true, minRows, maxRows };
