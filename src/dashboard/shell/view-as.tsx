import { Button, Combobox, Group, Text, useCombobox } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";
import { IconEye, IconX } from "../parts/icons.tsx";

const NOBODY = "anonymous";
const FOUND_MAX = 6;

/** Returns the viewed-as user from the address: an id, `anonymous`, or null for the key's own view. */
export const useViewAs = (): string | null =>
  useSearch({ strict: false, select: ({ as }: { as?: string }) => as ?? null });

/** Returns the server as the viewed-as user, or the key, sees it. */
export function useServer() {
  const as = useViewAs();
  return useMemo(() => (as === null ? server : server.as(as === NOBODY ? null : as)), [as]);
}

interface FoundUser {
  id: string;
  email: string | null;
}

/** Selects the viewed-as user. Needs the root key. */
export function ViewAs() {
  const { isRoot } = useRights();
  const as = useViewAs();
  if (!isRoot) return null;
  return as === null ? <Choose /> : <Chosen as={as} />;
}

function useChoose() {
  const navigate = useNavigate();
  return (as: string | undefined) =>
    void navigate({
      to: ".",
      search: (({ as: _, ...rest }: { as?: string }) => (as === undefined ? rest : { ...rest, as })) as never,
    });
}

function Choose() {
  const choose = useChoose();
  const combobox = useCombobox({
    onDropdownOpen: () => combobox.focusSearchInput(),
    onDropdownClose() {
      combobox.resetSelectedOption();
      combobox.focusTarget();
      setQuery("");
    },
  });
  const [query, setQuery] = useState("");
  const users = useQuery({
    queryKey: ["users", "view as", query],
    enabled: combobox.dropdownOpened,
    queryFn: () =>
      server.request<{ users: FoundUser[] }>("GET", "/api/auth/admin/users", {
        query: { limit: FOUND_MAX, ...(query === "" ? {} : { q: query }) },
      }),
  });
  return (
    <Combobox store={combobox} width={300} position="bottom-end" onOptionSubmit={(as) => choose(as)}>
      <Combobox.Target withAriaAttributes={false}>
        <Button variant="default" px="xs" onClick={() => combobox.toggleDropdown()} aria-label="View as">
          <IconEye size={16} aria-hidden />
          <Text span inherit ml={8} visibleFrom="xs">
            View as
          </Text>
        </Button>
      </Combobox.Target>
      <Combobox.Dropdown>
        <Combobox.Search
          aria-label="View as"
          placeholder="Email, name or id"
          size="xs"
          value={query}
          onChange={(event) => {
            setQuery(event.currentTarget.value);
            combobox.resetSelectedOption();
          }}
        />
        <Combobox.Options>
          <Combobox.Option value={NOBODY}>Nobody (not signed in)</Combobox.Option>
          {users.data?.users.map(({ id, email }) => (
            <Combobox.Option key={id} value={id}>
              <Text size="sm">{email ?? "anonymous user"}</Text>
              <Text size="xs" c="dimmed" ff="monospace">
                {id}
              </Text>
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}

function Chosen({ as }: { as: string }) {
  const choose = useChoose();
  const user = useQuery({
    queryKey: ["users", as, "name"],
    enabled: as !== NOBODY,
    queryFn: () => server.request<FoundUser>("GET", `/api/auth/admin/users/${encodeURIComponent(as)}`),
  });
  const name = as === NOBODY ? "nobody" : (user.data?.email ?? as);
  return (
    <Button
      color="orange"
      variant="light"
      maw={260}
      px="xs"
      rightSection={<IconX size={14} aria-hidden />}
      onClick={() => choose(undefined)}
      aria-label={`View as ${name}: end`}
    >
      <Group gap={6} wrap="nowrap">
        <IconEye size={16} aria-hidden />
        <Text size="sm" truncate visibleFrom="xs">
          {name}
        </Text>
      </Group>
    </Button>
  );
}
