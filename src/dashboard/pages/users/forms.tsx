import { JsonInput, TextInput } from "@mantine/core";
import { useState } from "react";
import type { AdminUser } from "../../../client/admin/index.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { useObjectDraft } from "../../parts/json/object-draft.ts";
import { textHeight } from "../../parts/text-height.ts";
import { useChange } from "./change.ts";
import { FormCard } from "./form-card.tsx";

export function Profile({ user }: { user: AdminUser }) {
  const { may } = useRights();
  // What was not edited is shown and left as it is stored: somebody else may have changed it since it was loaded.
  const [edits, setEdits] = useState<{ name?: string; role?: string }>({});
  const { name = user.displayName ?? "", role = user.role } = edits;
  const change = useChange("Saved", () =>
    server.users.update(user.id, {
      ...(name === (user.displayName ?? "") ? {} : { displayName: name === "" ? null : name }),
      ...(role === user.role ? {} : { role }),
    }),
  );
  const isReadOnly = !may("auth", "admin", "*", "write");
  // What is typed while it is saved stays.
  const onSuccess = (): void => setEdits((now) => (now === edits ? {} : now));
  const save = (): void => change.mutate(undefined, { onSuccess });
  return (
    <FormCard title="Profile" save={isReadOnly ? null : save} isSaving={change.isPending}>
      <TextInput
        label="Name"
        value={name}
        readOnly={isReadOnly}
        onChange={(event) => setEdits({ ...edits, name: event.currentTarget.value })}
      />
      <TextInput
        label="Role"
        value={role}
        readOnly={isReadOnly}
        onChange={(event) => setEdits({ ...edits, role: event.currentTarget.value })}
      />
    </FormCard>
  );
}

/** Claims are in the user's next token: rules read them as `auth.custom`. */
export function Claims({ user }: { user: AdminUser }) {
  const { may } = useRights();
  const draft = useObjectDraft(user.customClaims);
  const change = useChange("Saved; they count from the user's next token", async (edited: JsonObject) => {
    const present = await server.users.get(user.id);
    await server.users.setClaims(user.id, draft.appliedTo(present?.customClaims ?? {}, edited));
  });
  const isReadOnly = !may("auth", "admin", "*", "write");
  const save = (): void => {
    const edited = draft.read();
    if (edited !== null) change.mutate(edited, { onSuccess: draft.saved });
  };
  return (
    <FormCard title="Claims" save={isReadOnly ? null : save} isSaving={change.isPending}>
      <JsonInput
        validationError="This is no JSON"
        aria-label="Claims"
        {...textHeight(draft.text, 5, 20)}
        value={draft.text}
        readOnly={isReadOnly}
        onChange={draft.edit}
        error={draft.problem}
      />
    </FormCard>
  );
}
