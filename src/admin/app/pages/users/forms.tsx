import { JsonInput, TextInput } from "@mantine/core";
import { useState } from "react";
import type { AdminUser } from "../../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { useChange } from "./change.ts";
import { FormCard } from "./form-card.tsx";

export function Profile({ user }: { user: AdminUser }) {
  const { may } = useRights();
  const [name, setName] = useState(user.displayName ?? "");
  const [role, setRole] = useState(user.role);
  // What was not edited is left out: somebody else may have changed it since it was loaded.
  const change = useChange("Saved", () =>
    server.users.update(user.id, {
      ...(name === (user.displayName ?? "") ? {} : { displayName: name === "" ? null : name }),
      ...(role === user.role ? {} : { role }),
    }),
  );
  const isReadOnly = !may("auth", "admin", "*", "write");
  return (
    <FormCard title="Profile" save={isReadOnly ? null : () => change.mutate()} isSaving={change.isPending}>
      <TextInput
        label="Name"
        value={name}
        readOnly={isReadOnly}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Role"
        value={role}
        readOnly={isReadOnly}
        onChange={(event) => setRole(event.currentTarget.value)}
      />
    </FormCard>
  );
}

/** Claims are in the user's next token: rules read them as `auth.custom`. */
export function Claims({ user }: { user: AdminUser }) {
  const { may } = useRights();
  const [text, setText] = useState(JSON.stringify(user.customClaims, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const change = useChange("Saved; they count from the user's next token", (claims: AdminUser["customClaims"]) =>
    server.users.setClaims(user.id, claims),
  );
  const isReadOnly = !may("auth", "admin", "*", "write");
  const save = (): void => {
    try {
      change.mutate(JSON.parse(text));
      setProblem(null);
    } catch {
      setProblem("This is no JSON");
    }
  };
  return (
    <FormCard title="Claims" save={isReadOnly ? null : save} isSaving={change.isPending}>
      <JsonInput
        validationError="This is no JSON"
        aria-label="Claims"
        autosize
        minRows={5}
        maxRows={20}
        value={text}
        readOnly={isReadOnly}
        onChange={setText}
        error={problem}
      />
    </FormCard>
  );
}
