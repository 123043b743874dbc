import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { server } from "../../../api/server.ts";
import { SEARCH_DELAY_MS } from "../limits.ts";

export const NOBODY = "anonymous";
const NOBODY_NAME = "Nobody (not signed in)";
const FOUND_MAX = 8;

interface FoundUser {
  id: string;
  email: string | null;
}

/** Chooses a user, or nobody, by email, name or id. */
export function Who({ label, value, onChange }: { label: string; value: string; onChange(value: string): void }) {
  const [query, setQuery] = useState("");
  const [words] = useDebouncedValue(query, SEARCH_DELAY_MS);
  const found = useQuery({
    queryKey: ["users", "who", words],
    placeholderData: keepPreviousData,
    queryFn: () =>
      server.request<{ users: FoundUser[] }>("GET", "/api/auth/admin/users", {
        query: { limit: FOUND_MAX, ...(words === "" ? {} : { q: words }) },
      }),
  });
  const chosen = useQuery({
    queryKey: ["users", value, "name"],
    enabled: value !== NOBODY,
    queryFn: () => server.request<FoundUser>("GET", `/api/auth/admin/users/${encodeURIComponent(value)}`),
  });
  const users = new Map((found.data?.users ?? []).map((user) => [user.id, user]));
  if (value !== NOBODY) users.set(value, chosen.data ?? { id: value, email: null });
  const nameOf = ({ id, email }: FoundUser): string => email ?? id;
  const chosenName = value === NOBODY ? NOBODY_NAME : nameOf(users.get(value) ?? { id: value, email: null });
  return (
    <Select
      label={label}
      searchable
      allowDeselect={false}
      data={[
        { value: NOBODY, label: NOBODY_NAME },
        ...[...users.values()].map((user) => ({ value: user.id, label: nameOf(user) })),
      ]}
      // The server has found them, also by what is not shown.
      filter={({ options }) => options}
      // The name of whom is chosen is no search.
      onSearchChange={(text) => setQuery(text === chosenName ? "" : text)}
      value={value}
      onChange={(next) => onChange(next ?? value)}
    />
  );
}
