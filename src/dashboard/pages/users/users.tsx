import { Anchor, Badge, Button, Table, Text, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { UserEntry } from "../../../client/admin/index.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Ago } from "../../parts/format.tsx";
import { IconPlus, IconSearch } from "../../parts/icons.tsx";
import { Paged, usePaged, Wide } from "../../parts/list/list.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { NewUser } from "./new-user.tsx";

const PAGE = 50;

/** Everybody with an account, found by the beginning of an address or name. */
export default function UsersPage() {
  const { may } = useRights();
  const { state, change } = usePageState<{ q: string }>();
  const { q = "" } = state;
  const [isNew, setIsNew] = useState(false);
  const list = usePaged({
    queryKey: ["users", "list", q],
    load: (cursor) => server.users.list({ limit: PAGE, cursor, ...(q === "" ? {} : { q }) }),
  });
  return (
    <Page
      title="Users"
      actions={
        may("auth", "admin", "*", "write") ? (
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setIsNew(true)}>
            Insert
          </Button>
        ) : null
      }
    >
      <TextInput
        aria-label="Search"
        placeholder="Email, name or id"
        leftSection={<IconSearch size={16} aria-hidden />}
        maw={320}
        defaultValue={q}
        onChange={(event) => change({ q: event.currentTarget.value || undefined }, { replace: true })}
      />
      <Paged
        list={list}
        empty={
          <Empty title={q === "" ? "No users yet" : "Nobody has this name"}>
            {q === ""
              ? "Users sign up, or are inserted and invited here."
              : "Search for the beginning of an address or a name."}
          </Empty>
        }
      >
        {(users) => (
          <Wide minWidth={640}>
            <Table highlightOnHover>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Email</Table.Th>
                  <Table.Th>Name</Table.Th>
                  <Table.Th>Role</Table.Th>
                  <Table.Th>State</Table.Th>
                  <Table.Th>Since</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {users.map((user) => (
                  <UserLine key={user.id} user={user} />
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
        )}
      </Paged>
      {isNew ? <NewUser onClose={() => setIsNew(false)} /> : null}
    </Page>
  );
}

function UserLine({ user }: { user: UserEntry }) {
  const { id, email, displayName, role, isAnonymous, disabled, createdAt } = user;
  return (
    <Table.Tr>
      <Table.Td maw={320}>
        <Anchor component={Link} to={`/users/${encodeURIComponent(id)}`}>
          <Text size="sm" truncate>
            {email ?? id}
          </Text>
        </Anchor>
      </Table.Td>
      <Table.Td maw={240}>
        <Text size="sm" truncate>
          {displayName ?? ""}
        </Text>
      </Table.Td>
      <Table.Td>{role}</Table.Td>
      <Table.Td>
        {disabled ? (
          <Badge color="red" variant="light">
            disabled
          </Badge>
        ) : isAnonymous ? (
          <Badge color="gray" variant="light">
            anonymous
          </Badge>
        ) : null}
      </Table.Td>
      <Table.Td>
        <Ago time={createdAt} />
      </Table.Td>
    </Table.Tr>
  );
}
