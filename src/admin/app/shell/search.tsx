import { createSpotlight, Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { IconSearch, IconTable, IconUser } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useResources } from "../api/resources.ts";
import { server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";
import { useSections } from "./sections.ts";

const [store, spotlight] = createSpotlight();
export const openSearch = (): void => spotlight.open();

const FOUND_MAX = 7;

/** `/` searches pages, tables and users. */
export function Search() {
  const [query, setQuery] = useState("");
  const navigate = useNavigate();
  const sections = useSections();
  const schema = useResources();
  const users = useFoundUsers(query.trim());

  const pages = sections.map(
    ({ name, path, icon: Icon }): SpotlightActionData => ({
      id: `page ${path}`,
      label: name,
      leftSection: <Icon size={18} />,
      onClick: () => void navigate({ to: path }),
    }),
  );
  const tables = Object.entries(schema.data?.namespaces ?? {}).flatMap(([namespace, { instance, tables: own }]) =>
    Object.keys(own).map(
      (table): SpotlightActionData => ({
        id: `table ${namespace} ${table}`,
        label: table,
        description: instance ? `${namespace}, in every instance` : namespace,
        leftSection: <IconTable size={18} />,
        onClick: () => void navigate({ to: instance ? `/tables/${namespace}` : `/tables/${namespace}/-/${table}` }),
      }),
    ),
  );
  const people = users.map(
    ({ id, email, displayName }): SpotlightActionData => ({
      id: `user ${id}`,
      label: displayName ?? email ?? id,
      description: email ?? "anonymous",
      // The server has found them, also by what is not shown here.
      keywords: query,
      leftSection: <IconUser size={18} />,
      onClick: () => void navigate({ to: `/users/${id}` }),
    }),
  );
  return (
    <Spotlight
      store={store}
      shortcut={["/", "mod + K"]}
      query={query}
      onQueryChange={setQuery}
      actions={[
        { group: "Pages", actions: pages },
        { group: "Tables", actions: tables },
        { group: "Users", actions: people },
      ]}
      highlightQuery
      scrollable
      maxHeight={420}
      nothingFound="Nothing has this name"
      searchProps={{
        leftSection: <IconSearch size={18} />,
        placeholder: "Pages, tables, users",
        "aria-label": "Search",
      }}
    />
  );
}

interface FoundUser {
  id: string;
  email: string | null;
  displayName: string | null;
}

function useFoundUsers(query: string): readonly FoundUser[] {
  const { may } = useRights();
  const found = useQuery({
    queryKey: ["users", "search", query],
    enabled: query.length >= 2 && may("auth", "admin", "*", "read"),
    queryFn: () =>
      server.request<{ users: FoundUser[] }>("GET", "/api/auth/admin/users", { query: { q: query, limit: FOUND_MAX } }),
  });
  return found.data?.users ?? [];
}
