import { Button, Code, Group, JsonInput, Stack } from "@mantine/core";
import { type QueryKey, useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { describeFault, isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { jsonTextFault } from "../../kernel/json/text.ts";
import { messageOf, queries } from "../api/server.ts";
import { Problem } from "./states.tsx";

/** Parses typed JSON. Errors: `Error` that says what is wrong with `name`, including numbers that would lose precision. */
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

/** Value as multi-line text with wrapped lines. */
export const Json = ({ value }: { value: unknown }) => (
  <Code block className="wrapped">
    {JSON.stringify(value, null, 2)}
  </Code>
);

/**
 * Returns a draft of an object that is edited as JSON. Input stays while the stored object changes, and saving writes only edited
 * members, as others may have changed the rest.
 */
export function useObjectDraft(stored: JsonObject) {
  /** Edited text, and the object it started from; null: unedited. */
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
    /** Parses the text; sets a problem and returns null if it is not an object. */
    read(): JsonObject | null {
      const value = objectOf(text);
      setProblem(typeof value === "string" ? value : null);
      return typeof value === "string" ? null : value;
    },
    /** Applies the edits to `present`. */
    appliedTo(present: JsonObject, edited: JsonObject): JsonObject {
      const before = draft?.of ?? stored;
      const isEdited = ([name]: readonly [string, unknown]): boolean =>
        JSON.stringify(before[name]) !== JSON.stringify(edited[name]);
      const others = Object.entries(present).filter((member) => !isEdited(member));
      return Object.fromEntries([...others, ...Object.entries(edited).filter(isEdited)]);
    },
    /** Discards the input that the save started with; later input stays. */
    saved: (): void => setDraft((now) => (now === draft ? null : now)),
  };
}

/** Parses the text into an object, or returns the problem. */
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
  /** Saves the result of applying `changed` to the present metadata. */
  save(changed: (present: JsonObject) => JsonObject): Promise<unknown>;
  /** Query to invalidate after a save. */
  queryKey: QueryKey;
  isWritable: boolean;
}

/** Metadata as JSON, edited in place. */
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

/** Limit of measured texts: browsers lay out the whole text at each key, which takes seconds for a million characters. */
const MEASURED_MAX_CHARACTERS = 20_000;

/** Returns the height of a multi-line input: as its text needs, between these numbers of rows; the maximum for long texts. */
export const textHeight = (text: string, minRows: number, maxRows: number) =>
  text.length > MEASURED_MAX_CHARACTERS ? { rows: maxRows } : { autosize: true, minRows, maxRows };
