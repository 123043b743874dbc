import { Anchor, Badge, Button, Text, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Ago } from "../../parts/format.tsx";
import { IconPlus, IconSearch } from "../../parts/icons.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { NewUser } from "./new-user.tsx";

const PAGE = 50;

/** All accounts, searchable by prefix of address or name. */
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
          <DataTable
            label="Users"
            minWidth={640}
            highlightOnHover
            items={users}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Email",
                maxWidth: 320,
                show: ({ id, email }) => (
                  <Anchor component={Link} to={`/users/${encodeURIComponent(id)}`}>
                    <Text size="sm" truncate>
                      {email ?? id}
                    </Text>
                  </Anchor>
                ),
              },
              {
                title: "Name",
                maxWidth: 240,
                show: ({ displayName }) => (
                  <Text size="sm" truncate>
                    {displayName ?? ""}
                  </Text>
                ),
              },
              { title: "Role", show: ({ role }) => role },
              {
                title: "State",
                show: ({ disabled, isAnonymous }) =>
                  disabled || isAnonymous ? (
                    <Badge color={disabled ? "red" : "gray"} variant="light">
                      {disabled ? "disabled" : "anonymous"}
                    </Badge>
                  ) : null,
              },
              { title: "Since", show: ({ createdAt }) => <Ago time={createdAt} /> },
            ]}
          />
        )}
      </Paged>
      {isNew ? <NewUser onClose={() => setIsNew(false)} /> : null}
    </Page>
  );
}
