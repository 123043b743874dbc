import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import type { AdminUser } from "../../../client/admin/index.ts";
import { queries, server } from "../../api/server.ts";
import { Problem } from "../../parts/states.tsx";

interface Merged {
  records: Record<string, number>;
  files: number;
  identities: number;
}

/** Button that makes another account part of this one, after a preview. */
export function Merge({ user }: { user: AdminUser }) {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="default" onClick={open}>
        Merge
      </Button>
      {isOpen ? <MergeForm user={user} onClose={close} /> : null}
    </>
  );
}

function MergeForm({ user, onClose }: { user: AdminUser; onClose(): void }) {
  const [named, setNamed] = useState("");
  const preview = useMutation({
    async mutationFn() {
      const other = await find(named.trim());
      return { other, counts: await merge(user.id, other.id, true) };
    },
  });
  const merging = useMutation({
    mutationFn: (from: string) => merge(user.id, from, false),
    onSuccess() {
      notifications.show({ message: "The accounts are one now; both addresses are told by mail" });
      onClose();
      return queries.invalidateQueries({ queryKey: ["users"] });
    },
  });
  const shown = preview.data;
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    merging.reset();
    preview.mutate();
  };
  return (
    <Modal opened onClose={onClose} title="Merge another account into this one">
      <form onSubmit={submit}>
        <Stack gap="sm">
          <TextInput
            label="Email or id of the account that goes"
            required
            value={named}
            onChange={(event) => {
              setNamed(event.currentTarget.value);
              preview.reset();
            }}
          />
          {shown === undefined ? null : <Preview user={user} other={shown.other} counts={shown.counts} />}
          <Problem of={preview.error ?? merging.error} />
          <Group gap="xs">
            {shown === undefined ? (
              <Button type="submit" loading={preview.isPending}>
                Preview
              </Button>
            ) : (
              <Button color="red" loading={merging.isPending} onClick={() => merging.mutate(shown.other.id)}>
                Merge
              </Button>
            )}
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function Preview({ user, other, counts }: { user: AdminUser; other: AdminUser; counts: Merged }) {
  const moved = [
    ...Object.entries(counts.records).map(([place, count]) => `${count} of ${place}`),
    `${counts.files} files`,
    `${counts.identities} linked accounts`,
  ];
  return (
    <Text size="sm">
      {other.email ?? other.id} goes, with its password, factors and sessions. {moved.join(", ")} and its passkeys and
      devices become those of {user.email ?? user.id}, who keeps role and claims.
    </Text>
  );
}

/** Finds an account by its id or address. Errors: there is none. */
async function find(named: string): Promise<AdminUser> {
  const byId = named === "" || named.includes("@") ? null : await server.users.get(named);
  if (byId !== null) return byId;
  const { users } = await server.request<{ users: { id: string }[] }>("GET", "/api/auth/admin/users", {
    query: { email: named },
  });
  const [found] = users;
  const user = found === undefined ? null : await server.users.get(found.id);
  if (user === null) throw new Error(`There is no user with the id or address "${named}"`);
  return user;
}

const merge = (into: string, from: string, preview: boolean): Promise<Merged> =>
  server.request<Merged>("POST", `/api/auth/admin/users/${encodeURIComponent(into)}/merge`, {
    body: { from, preview },
  });
