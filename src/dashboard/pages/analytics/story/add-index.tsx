import { Button, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { EditDialog } from "../../tables/edit/review.tsx";
import { useSource } from "../../tables/edit/source.ts";
import type { ProposedIndex } from "./model.ts";

/** Button that adds an index to the config, after a review; only with the root key, and where the config is a file. */
export function AddIndex({ index }: { index: ProposedIndex }) {
  const source = useSource();
  const [isOpen, setIsOpen] = useState(false);
  if (source === null) return null;
  const { namespace, table, fields } = index;
  const name = `${namespace}.${table} (${fields.join(", ")})`;
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={() => setIsOpen(true)}>
        Add the index
      </Button>
      {isOpen ? (
        <EditDialog
          title={`Index on ${name}`}
          source={source}
          onClose={() => setIsOpen(false)}
          form={(review) => (
            <Stack gap="sm" align="flex-start">
              <Text size="sm">
                SQLite would read the records that it needs by this index, and none besides. It takes space, and a
                little of the time of each write.
              </Text>
              <Button onClick={() => review([{ do: "addIndex", ...index }])} data-autofocus>
                Review
              </Button>
            </Stack>
          )}
        />
      ) : null}
    </>
  );
}
