import { Button, Checkbox, Group, JsonInput, PasswordInput, TextInput } from "@mantine/core";
import { useState } from "react";
import type { AdminUser } from "../../../client/admin/index.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { PlatformError, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { textHeight, useObjectDraft } from "../../parts/json.tsx";
import { FormCard, useChange } from "./change.tsx";

export function Profile({ user }: { user: AdminUser }) {
  const { may } = useRights();
  // Unedited fields follow the stored values: somebody else may change them meanwhile.
  const [edits, setEdits] = useState<{ name?: string; role?: string; language?: string }>({});
  const { name = user.displayName ?? "", role = user.role, language = user.language ?? "" } = edits;
  const change = useChange("Saved", () =>
    server.users.update(user.id, {
      ...(name === (user.displayName ?? "") ? {} : { displayName: name === "" ? null : name }),
      ...(role === user.role ? {} : { role }),
      ...(language === (user.language ?? "") ? {} : { language: language === "" ? null : language }),
    }),
  );
  const isReadOnly = !may("auth", "admin", "*", "write");
  // Input typed during the save stays.
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
      <TextInput
        label="Language of mails"
        placeholder="de-AT"
        value={language}
        readOnly={isReadOnly}
        onChange={(event) => setEdits({ ...edits, language: event.currentTarget.value })}
      />
    </FormCard>
  );
}

/** Form for claims. They are in the user's next token, and rules read them as `auth.custom`. */
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

interface Edits {
  email?: string;
  emailVerified?: boolean;
  phone?: string;
  password?: string;
}

/** Form for the user's address, phone number and password, and the mails that let the user set them. Changes need a separate scope. */
export function Credentials({ user }: { user: AdminUser }) {
  const { may } = useRights();
  const [edits, setEdits] = useState<Edits>({});
  const { email = user.email ?? "", phone = user.phone ?? "", password = "" } = edits;
  const isMoved = email.trim() !== (user.email ?? "");
  // A new address is unverified by default.
  const emailVerified = edits.emailVerified ?? (isMoved ? false : user.emailVerified);
  const change = useChange("Saved", () =>
    server.users.update(user.id, {
      ...(isMoved ? { email } : {}),
      ...(emailVerified === user.emailVerified ? {} : { emailVerified }),
      ...(phone.trim() === (user.phone ?? "") ? {} : { phone: phone.trim() === "" ? null : phone }),
      ...(password === "" ? {} : { password }),
    }),
  );
  const isReadOnly = !may("auth", "admin", "*", "write") || !may("auth", "credentials", "*", "write");
  const fields = change.error instanceof PlatformError ? change.error.fields : {};
  const endsSessions = isMoved || password !== "";
  const save = (): void => {
    // Input typed during the save stays.
    change.mutate(undefined, { onSuccess: () => setEdits((now) => (now === edits ? {} : now)) });
  };
  return (
    <FormCard title="Address, phone and password" save={isReadOnly ? null : save} isSaving={change.isPending}>
      <TextInput
        label="Email"
        type="email"
        value={email}
        readOnly={isReadOnly}
        description={
          isMoved && user.email !== null ? `${user.email} is told by mail that it is no longer the address.` : null
        }
        error={fields["email"]?.message}
        onChange={(event) => setEdits({ ...edits, email: event.currentTarget.value })}
      />
      <Checkbox
        label="The address is verified"
        checked={emailVerified}
        disabled={isReadOnly}
        onChange={(event) => setEdits({ ...edits, emailVerified: event.currentTarget.checked })}
      />
      <TextInput
        label="Phone"
        type="tel"
        placeholder="+43 660 1234567"
        description={isReadOnly ? null : "With + and the country, as verified by you. Empty: none."}
        value={phone}
        readOnly={isReadOnly}
        error={fields["phone"]?.message}
        onChange={(event) => setEdits({ ...edits, phone: event.currentTarget.value })}
      />
      {isReadOnly ? null : (
        <PasswordInput
          label="New password"
          autoComplete="new-password"
          description={
            endsSessions ? "Saving signs the user out everywhere; mailed links become invalid." : "Empty: it stays."
          }
          value={password}
          error={fields["password"]?.message}
          onChange={(event) => setEdits({ ...edits, password: event.currentTarget.value })}
        />
      )}
      {user.email === null || !may("auth", "admin", "*", "write") ? null : <Mails user={user} />}
    </FormCard>
  );
}

function Mails({ user }: { user: AdminUser }) {
  const reset = useChange("The link is mailed", () => server.users.sendMail(user.id, "reset"));
  const verification = useChange("The link is mailed", () => server.users.sendMail(user.id, "verification"));
  return (
    <Group gap="xs">
      <Button variant="default" disabled={user.disabled} loading={reset.isPending} onClick={() => reset.mutate()}>
        Mail a reset link
      </Button>
      {user.emailVerified ? null : (
        <Button
          variant="default"
          disabled={user.disabled}
          loading={verification.isPending}
          onClick={() => verification.mutate()}
        >
          Mail a verification link
        </Button>
      )}
    </Group>
  );
}
