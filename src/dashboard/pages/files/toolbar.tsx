import { ActionIcon, Breadcrumbs, Group, Progress, Select, Text, TextInput, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { server } from "../../api/server.ts";
import { bytesText } from "../../parts/format.tsx";
import { IconLayoutGrid, IconList, IconSearch } from "../../parts/icons.tsx";
import { Name, PageLink } from "../../parts/name.tsx";
import { type FilesState, foldersOf, type Layout } from "./address.ts";

interface ToolbarProps {
  buckets: readonly string[];
  bucket: string;
  prefix: string;
  q: string;
  layout: Layout;
  change(next: { [Name in keyof FilesState]?: FilesState[Name] | undefined }, options?: { replace?: boolean }): void;
}

/** Toolbar that selects the bucket, the folder and the layout. */
export function Toolbar({ buckets, bucket, prefix, q, layout, change }: ToolbarProps) {
  return (
    <>
      <Group gap="xs">
        <Select
          aria-label="Bucket"
          data={[...buckets]}
          value={bucket}
          allowDeselect={false}
          w={200}
          onChange={(next) =>
            change({ bucket: next ?? bucket, prefix: undefined, q: undefined, file: undefined, uploads: undefined })
          }
        />
        <SearchBox key={`${bucket} ${prefix}`} q={q} change={change} />
        <ActionIcon.Group>
          <LayoutButton layout="list" shown={layout} change={change} />
          <LayoutButton layout="pictures" shown={layout} change={change} />
        </ActionIcon.Group>
      </Group>
      {prefix === "" ? null : (
        <Breadcrumbs component="nav" aria-label="Folders" className="files-path">
          {[{ name: bucket, prefix: "" }, ...foldersOf(prefix)].map((folder) =>
            folder.prefix === prefix ? (
              <span key={folder.prefix} aria-current="location" className="name-link">
                <Name>{folder.name}</Name>
              </span>
            ) : (
              <PageLink
                key={folder.prefix}
                change={{ prefix: folder.prefix || undefined, q: undefined }}
                className="name-link"
              >
                <Name>{folder.name}</Name>
              </PageLink>
            ),
          )}
        </Breadcrumbs>
      )}
    </>
  );
}

function SearchBox({ q, change }: Pick<ToolbarProps, "q" | "change">) {
  const [text, setText] = useState(q);
  // Back and forward change the address, but not the box.
  useEffect(() => setText(q), [q]);
  return (
    <TextInput
      aria-label="Search"
      placeholder="Beginning of the name"
      leftSection={<IconSearch size={16} aria-hidden />}
      w={240}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        change({ q: event.currentTarget.value || undefined }, { replace: true });
      }}
    />
  );
}

const LAYOUTS = {
  list: { label: "As a list", Icon: IconList },
  pictures: { label: "As pictures", Icon: IconLayoutGrid },
} as const;

function LayoutButton({ layout, shown, change }: Pick<ToolbarProps, "layout" | "change"> & { shown: Layout }) {
  const { label, Icon } = LAYOUTS[layout];
  return (
    <Tooltip label={label}>
      <ActionIcon
        size="lg"
        variant={layout === shown ? "light" : "default"}
        aria-label={label}
        aria-pressed={layout === shown}
        onClick={() => change({ layout: layout === "list" ? undefined : layout })}
      >
        <Icon size={18} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}

const PERCENT = 100;
const NEARLY_FULL = 0.9;

/** Returns a bucket's configuration. Needs the scope for reading its files. */
export const useBucket = (bucket: string) =>
  useQuery({ queryKey: ["files", bucket, "bucket"], queryFn: () => server.buckets.describe(bucket) });

/** Use of the bucket's quota. Empty for buckets without one. */
export function Quota({ bucket }: { bucket: string }) {
  const quota = useBucket(bucket).data?.quota ?? null;
  if (quota === null) return null;
  const { total, perUser, used } = quota;
  const share = total === null ? 0 : used / total;
  const parts = [
    total === null ? `${bytesText(used)} used` : `${bytesText(used)} of ${bytesText(total)} used`,
    perUser === null ? null : `${bytesText(perUser)} for each user`,
  ];
  const text = parts.filter((part) => part !== null).join(", ");
  return (
    <Group gap="sm" wrap="nowrap">
      {total === null ? null : (
        <Progress
          w={160}
          size="sm"
          value={Math.min(PERCENT, share * PERCENT)}
          color={share >= NEARLY_FULL ? "red" : "ink"}
          aria-label={`Quota: ${text}`}
        />
      )}
      <Text size="sm" c="dimmed" className="number">
        {text}
      </Text>
    </Group>
  );
}
