import { Button, Group, Modal, PasswordInput, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type SyntheticEvent, useState } from "react";
import { PlatformError, queries, server } from "../../api/server.ts";
import { Problem } from "../../parts/states.tsx";

interface Created {
  user: { id: string };
}

/** Form for a new user: with a password, or invited by mail to set one. */
export function NewUser({ onClose }: { onClose(): void }) {
  const [way, setWay] = useState("password");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState("user");
  const navigate = useNavigate();
  const isInvited = way === "invite";
  const create = useMutation({
    mutationFn: () =>
      isInvited
        ? server.request<Created>("POST", "/api/auth/admin/users/invite", { body: { email, role } })
        : server.request<Created>("POST", "/api/auth/admin/users", { body: { email, password, role } }),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["users"] }),
  });
  const fields = create.error instanceof PlatformError ? create.error.fields : {};
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    // A response that arrives after this form was closed must not navigate.
    create.mutate(undefined, {
      onSuccess({ user }) {
        onClose();
        void navigate({ to: `/users/${user.id}` });
      },
    });
  };
  return (
    <Modal opened onClose={onClose} title="New user">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <SegmentedControl
            value={way}
            onChange={setWay}
            data={[
              { value: "password", label: "With a password" },
              { value: "invite", label: "Invite by mail" },
            ]}
          />
          <TextInput
            label="Email"
            type="email"
            required
            value={email}
            error={fields["email"]?.message}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          {isInvited ? null : (
            <PasswordInput
              label="Password"
              required
              autoComplete="new-password"
              value={password}
              error={fields["password"]?.message}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
          )}
          <TextInput
            label="Role"
            value={role}
            error={fields["role"]?.message}
            onChange={(event) => setRole(event.currentTarget.value)}
          />
          <Problem of={Object.keys(fields).length > 0 ? null : create.error} />
          <Group gap="xs">
            <Button type="submit" loading={create.isPending}>
              Save
            </Button>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
