import { Stack } from "@mantine/core";
import { type SyntheticEvent, useState } from "react";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { messageOf, PlatformError } from "../../../api/server.ts";
import { Problem } from "../../../parts/states.tsx";
import type { TableAddress } from "../address.ts";
import { editText, parsed } from "../grid/cell-text.tsx";
import type { Row } from "../rows.ts";
import { FilesInput, SendingProgress, useFormFiles } from "./files.tsx";
import { FieldInput } from "./input.tsx";
import { FormButtons, type RecordActions, useSave } from "./state.tsx";

interface FormProps extends RecordActions {
  address: TableAddress;
  schema: TableSchema;
  /** Stored record; null: a new one. */
  stored: Row | null;
  /** Record whose values a new one starts with. */
  copied?: Row;
  isReadOnly: boolean;
}

/** Returns whether a field is set by the server, or is the id: a copy gets others. */
const isOwn = (name: string, field: Field): boolean => field.generated || name === "id";

/** Form with all fields of a record. Only changed ones are sent. */
export function RecordForm({ address, schema, stored: loaded, copied, isReadOnly, ...actions }: FormProps) {
  /** Edited texts, and the record they started from, which others may change meanwhile; null: unedited. */
  const [draft, setDraft] = useState<{ texts: Readonly<Record<string, string>>; of: Row | null } | null>(null);
  const stored = draft === null ? loaded : draft.of;
  const fields = Object.entries(schema.fields).filter(
    ([name, field]) => stored !== null || name === "id" || !isOwn(name, field),
  );
  const texts =
    draft?.texts ??
    Object.fromEntries(
      fields.map(([name, field]) => {
        const value = stored?.[name] ?? (isOwn(name, field) ? undefined : copied?.[name]);
        return [name, editText(value, field)];
      }),
    );
  const files = useFormFiles(address, schema, stored);
  const save = useSave(address, stored);
  const problems = save.error instanceof PlatformError ? save.error.fields : {};
  const [unread, setUnread] = useState<Record<string, string>>({});
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const body = files.given();
    const wrong: Record<string, string> = {};
    for (const [name, field] of fields) {
      // A copy has no files: each belongs to one record.
      if (field.type === "file") continue;
      const text = texts[name] ?? "";
      const given = isOwn(name, field) ? undefined : copied?.[name];
      // Includes null and empty texts of the copied record: left out, they would become the default.
      if (given !== undefined && text === editText(given, field)) {
        body[name] = given;
        continue;
      }
      if (text === editText(stored?.[name], field)) continue;
      try {
        body[name] = parsed(text, field, stored?.[name] ?? given);
      } catch (error) {
        wrong[name] = messageOf(error);
      }
    }
    setUnread(wrong);
    // A response that arrives after this form was closed must not close another one.
    if (Object.keys(wrong).length === 0) save.mutate(body, { onSuccess: actions.onClose });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {fields.map(([name, field]) =>
          field.type === "file" ? (
            <FilesInput
              key={name}
              {...files.propsOf(name, field)}
              problem={problems[name]?.message ?? null}
              isReadOnly={isReadOnly || save.isPending}
            />
          ) : (
            <FieldInput
              key={name}
              name={name}
              field={field}
              address={address}
              text={texts[name] ?? ""}
              stored={editText(stored?.[name], field)}
              problem={unread[name] ?? problems[name]?.message ?? null}
              // The id of a new record may be chosen.
              isReadOnly={isReadOnly || (isOwn(name, field) && !(stored === null && name === "id"))}
              onChange={(text) =>
                setDraft((before) => ({ texts: { ...(before?.texts ?? texts), [name]: text }, of: stored }))
              }
            />
          ),
        )}
        <SendingProgress of={save.progress} />
        <Problem of={Object.keys(problems).some((name) => name in schema.fields) ? null : save.error} />
        <FormButtons
          {...actions}
          onClose={() => {
            save.abort();
            actions.onClose();
          }}
          stored={stored}
          isReadOnly={isReadOnly}
          isSaving={save.isPending}
        />
      </Stack>
    </form>
  );
}
