import { Alert, Button, Code, Drawer, Group, JsonInput, Stack, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import type { Vector } from "../../../../client/admin/types.ts";
import { messageOf } from "../../api/failure.ts";
import { queries, server } from "../../api/server.ts";
import { Name } from "../../parts/name.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { NEIGHBOURS_SHOWN } from "./limits.ts";
import { Neighbours } from "./neighbours.tsx";
import { type Index, parseObject } from "./state.ts";

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
              <Metadata index={index} vector={found} isWritable={isWritable} key={JSON.stringify(found.metadata)} />
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
  const before = JSON.stringify(vector.metadata, null, 2);
  const [text, setText] = useState(before);
  const [problem, setProblem] = useState<string | null>(null);
  const save = useMutation({
    mutationFn: (metadata: Vector["metadata"]) =>
      server.vectors(index.name).upsert([{ id: vector.id, values: vector.values, ...(metadata && { metadata }) }]),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["vectors", index.name] }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    try {
      save.mutate(parseObject(text));
      setProblem(null);
    } catch (error) {
      setProblem(messageOf(error));
    }
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
          value={text}
          onChange={setText}
          readOnly={!isWritable}
          error={problem}
        />
        {save.error === null ? null : (
          <Alert color="red" role="alert">
            {messageOf(save.error)}
          </Alert>
        )}
        {isWritable && text !== before ? (
          <Group gap="xs">
            <Button size="xs" type="submit" loading={save.isPending}>
              Save
            </Button>
            <Button size="xs" variant="default" onClick={() => setText(before)}>
              Cancel
            </Button>
          </Group>
        ) : null}
      </Stack>
    </form>
  );
}
