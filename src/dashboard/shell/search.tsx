import { createSpotlight, Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useResources } from "../api/resources.ts";
import { server } from "../api/server.ts";
import { useRights } from "../api/session.tsx";
import { IconFile, IconSearch, IconTable, IconUser } from "../parts/icons.tsx";
import { plainName } from "../parts/name.tsx";
import { type FoundUser, useCommands } from "./commands.tsx";
import { useSections } from "./sections.ts";

const [store, spotlight] = createSpotlight();
export const openSearch = (): void => spotlight.open();

const FOUND_MAX = 7;
/** Maximum number of buckets in which files are searched, and of files found in each. */
const BUCKETS_MAX = 8;
const FILES_OF_BUCKET_MAX = 3;

/** Search of pages, tables, users, files and commands. The layout loads it, and opens it by `/`. */
export function Search() {
  const [query, setQuery] = useState("");
  const navigate = useNavigate();
  const sections = useSections();
  const schema = useResources();
  const users = useFoundUsers(query.trim());
  const files = useFoundFiles(query.trim());
  const commands = useCommands(query, users);

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
      // The server has filtered the options, also by fields that are not shown here.
      keywords: query,
      leftSection: <IconUser size={18} />,
      onClick: () => void navigate({ to: `/users/${id}` }),
    }),
  );
  const found = files.map(
    ({ bucket, key }): SpotlightActionData => ({
      id: `file ${bucket} ${key}`,
      label: plainName(key.split("/").at(-1) ?? key),
      description: plainName(`${bucket}/${key}`),
      keywords: query,
      leftSection: <IconFile size={18} />,
      onClick: () => {
        const prefix = key.slice(0, key.lastIndexOf("/") + 1);
        const search = { bucket, file: key, ...(prefix === "" ? {} : { prefix }) };
        void navigate({ to: "/files", search: search as never });
      },
    }),
  );
  return (
    <Spotlight
      store={store}
      shortcut={null}
      query={query}
      onQueryChange={setQuery}
      actions={[
        { group: "Pages", actions: pages },
        // Behind a first letter: a list that opens by one key must not have Enter on a command.
        { group: "Commands", actions: query.trim() === "" ? [] : [...commands] },
        { group: "Tables", actions: tables },
        { group: "Users", actions: people },
        { group: "Files", actions: found },
      ]}
      highlightQuery
      scrollable
      maxHeight={420}
      nothingFound="Nothing has this name"
      searchProps={{
        leftSection: <IconSearch size={18} />,
        placeholder: "Pages, tables, users, files, commands",
        "aria-label": "Search",
      }}
    />
  );
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

/** Searches files by key prefix, in the first buckets that the key may read. */
function useFoundFiles(query: string): readonly { bucket: string; key: string }[] {
  const { may } = useRights();
  const buckets = (useResources().data?.buckets ?? [])
    .map(({ name }) => name)
    .filter((name) => may("storage", "bucket", name, "read"))
    .slice(0, BUCKETS_MAX);
  const found = useQuery({
    queryKey: ["files", "search", query, buckets],
    enabled: query.length >= 2 && buckets.length > 0,
    async queryFn() {
      const lists = buckets.map(async (bucket) => {
        const { items } = await server.storage(bucket).list({ prefix: query, limit: FILES_OF_BUCKET_MAX });
        return items.map(({ key }) => ({ bucket, key }));
      });
      return (await Promise.all(lists)).flat();
    },
  });
  return found.data ?? [];
}
