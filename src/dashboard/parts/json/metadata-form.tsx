import { Button, Group, JsonInput, Stack } from "@mantine/core";
import { type QueryKey, useMutation } from "@tanstack/react-query";
import type { SyntheticEvent } from "react";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { queries } from "../../api/server.ts";
import { Problem } from "../states.tsx";
import { textHeight } from "../text-height.ts";
import { useObjectDraft } from "./object-draft.ts";

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
