import { Button, Code, Drawer, Stack, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Vector } from "../../../client/admin/stores.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { server } from "../../api/server.ts";
import { MetadataForm } from "../../parts/json/metadata-form.tsx";
import { Name } from "../../parts/name.tsx";
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
  const save = async (changed: (present: JsonObject) => JsonObject): Promise<void> => {
    const vectors = server.vectors(index.name);
    // Its values may be others by now, and are written with the metadata.
    const [present] = await vectors.get([vector.id]);
    if (present === undefined) throw new Error("The vector was deleted meanwhile");
    await vectors.upsert([{ id: vector.id, values: present.values, metadata: changed(present.metadata) }]);
  };
  const queryKey = ["vectors", index.name];
  return <MetadataForm stored={vector.metadata} save={save} queryKey={queryKey} isWritable={isWritable} />;
}
