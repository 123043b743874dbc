import { JsonInput, Stack, TextInput } from "@mantine/core";
import { type SyntheticEvent, useState } from "react";
import { isJsonObject } from "../../../../kernel/json/json.ts";
import { messageOf } from "../../../api/server.ts";
import { parseJson, textHeight } from "../../../parts/json.tsx";
import { Problem } from "../../../parts/states.tsx";
import type { TableAddress } from "../address.ts";
import type { Row } from "../rows.ts";
import { FormButtons, type RecordActions, useSave } from "./state.tsx";

/** Fields that the server sets, and the id. */
const SERVER_FIELDS = ["id", "createdAt", "updatedAt"];

const fieldsOf = (record: Row | null): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record ?? {}).filter(([name]) => !SERVER_FIELDS.includes(name)));

/** Form for a record of a table without a schema, as JSON. */
export function DocumentForm({
  address,
  stored: loaded,
  copied = null,
  isReadOnly,
  ...actions
}: RecordActions & { address: TableAddress; stored: Row | null; copied?: Row | null; isReadOnly: boolean }) {
  /** Edited text, and the record it started from, which others may change meanwhile; null: unedited. */
  const [draft, setDraft] = useState<{ text: string; of: Row | null } | null>(null);
  const stored = draft === null ? loaded : draft.of;
  const text = draft?.text ?? JSON.stringify(fieldsOf(stored ?? copied), null, 2);
  const [id, setId] = useState(loaded?.id ?? "");
  const [problem, setProblem] = useState<string | null>(null);
  const save = useSave(address, stored);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const fields = objectOf(text);
    setProblem(typeof fields === "string" ? fields : null);
    if (typeof fields === "string") return;
    const added = id === "" ? fields : { ...fields, id };
    const body = stored === null ? added : changesOf(fieldsOf(stored), fields);
    // A response that arrives after this form was closed must not close another one.
    save.mutate(body, { onSuccess: actions.onClose });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label="id"
          placeholder="Set by the server"
          readOnly={stored !== null || isReadOnly}
          value={id}
          onChange={(event) => setId(event.currentTarget.value)}
        />
        <JsonInput
          label="Fields"
          {...textHeight(text, 6, 24)}
          readOnly={isReadOnly}
          value={text}
          error={problem}
          onChange={(next) => setDraft({ text: next, of: stored })}
        />
        <Problem of={save.error} />
        <FormButtons {...actions} stored={stored} isReadOnly={isReadOnly} isSaving={save.isPending} />
      </Stack>
    </form>
  );
}

/** Parses the text into an object, or returns the problem. */
function objectOf(text: string): Record<string, unknown> | string {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : "The fields are a JSON object";
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns new and changed members, and an operator for each removed one. */
function changesOf(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, { $op: "deleteField" }])]);
}
