import { Alert, Button, Code, Drawer, Group, JsonInput, Stack, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { SyntheticEvent } from "react";
import type { Vector } from "../../../../client/admin/types.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { messageOf } from "../../api/failure.ts";
import { queries, server } from "../../api/server.ts";
import { Name } from "../../parts/name.tsx";
import { useObjectDraft } from "../../parts/object-draft.ts";
import { Empty, Loadable } from "../../parts/states.tsx";
import { NEIGHBOURS_SHOWN } from "./limits.ts";
import { Neighbours } from "./neighbours.tsx";
import type { Index } from "./state.ts";

interface VectorProps {
  index: Index;
  id: string;
  isWritable: boolean;
  onDelete(): void;
  onClose(): void;
}

/** One vector: its metadata, what is near to it, and its values. */
export function OpenVector({ index, id, isWritable, onDelete, onClose }: VectorProps) {
  const vector = useQuery({
    queryKey: ["vectors", index.name, "one", id],
    queryFn: async () => (await server.vectors(index.name).get([id]))[0] ?? null,
  });
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="lg"
      title={<Name className="breaking">{id}</Name>}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loadable query={vector}>
        {(found) =>
          found === null ? (
            <Empty title="There is no such vector">Ids are compared as a whole, with small and capital letters.</Empty>
          ) : (
            <Stack gap="md" key={id}>
              <Metadata index={index} vector={found} isWritable={isWritable} />
              <Title order={3} size="h6">
                Nearest
              </Title>
              <Neighbours index={index} vector={found.values} except={id} count={NEIGHBOURS_SHOWN + 1} />
              <Title order={3} size="h6">
                Values
              </Title>
              <Code block className="breaking" mah={160} tabIndex={0} role="region" aria-label="Values">
                {found.values.join(", ")}
              </Code>
              {isWritable ? (
                <Button color="red" variant="light" w="fit-content" onClick={onDelete}>
                  Delete
                </Button>
              ) : null}
            </Stack>
          )
        }
      </Loadable>
    </Drawer>
  );
}

function Metadata({ index, vector, isWritable }: { index: Index; vector: Required<Vector>; isWritable: boolean }) {
  const draft = useObjectDraft(vector.metadata);
  const save = useMutation({
    async mutationFn(edited: JsonObject) {
      const vectors = server.vectors(index.name);
      // Its values may be others by now, and are written with the metadata.
      const [present] = await vectors.get([vector.id]);
      if (present === undefined) throw new Error("The vector was deleted meanwhile");
      const metadata = draft.appliedTo(present.metadata, edited);
      await vectors.upsert([{ id: vector.id, values: present.values, metadata }]);
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["vectors", index.name] }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const edited = draft.read();
    if (edited !== null) save.mutate(edited, { onSuccess: draft.saved });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        <JsonInput
          label="Metadata"
          validationError="This is no JSON"
          autosize
          minRows={2}
          maxRows={14}
          value={draft.text}
          onChange={draft.edit}
          readOnly={!isWritable}
          error={draft.problem}
        />
        {save.error === null ? null : (
          <Alert color="red" role="alert">
            {messageOf(save.error)}
          </Alert>
        )}
        {isWritable && draft.isEdited ? (
          <Group gap="xs">
            <Button size="xs" type="submit" loading={save.isPending}>
              Save
            </Button>
            <Button size="xs" variant="default" onClick={draft.drop}>
              Cancel
            </Button>
          </Group>
        ) : null}
      </Stack>
    </form>
  );
}
