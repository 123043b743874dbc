import { Button, Code, Drawer, Group, JsonInput, Stack, Table, Text, Textarea, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import type { Vector } from "../../../client/admin/stores.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { messageOf, server } from "../../api/server.ts";
import { MetadataForm } from "../../parts/json.tsx";
import { Name, PageLink } from "../../parts/name.tsx";
import { Empty, Loadable, Problem } from "../../parts/states.tsx";
import { type Change, type Index, parseObject, parseVector } from "./state.ts";

/** Number of neighbours to search for. */
const NEIGHBOURS_SHOWN = 10;

/** Meaning of a score, by the metric of the index. */
const SCORES: Readonly<Record<string, string>> = {
  cosine: "Similarity",
  euclidean: "Distance",
  "dot-product": "Product",
};
const DIGITS = 4;

interface NeighboursProps {
  index: Index;
  vector: readonly number[];
  filter?: Record<string, never>;
  /** Id of a vector to leave out: the searched one itself. */
  except?: string;
  count: number;
}

/** Nearest vectors, nearest first. */
function Neighbours({ index, vector, filter = {}, except, count }: NeighboursProps) {
  const found = useQuery({
    queryKey: ["vectors", index.name, "near", vector, filter, count],
    queryFn: () => server.vectors(index.name).search(vector, { topK: count, filter }),
  });
  return (
    <Loadable query={found} rows={4}>
      {(all) => {
        const matches = all.filter(({ id }) => id !== except);
        if (matches.length === 0) {
          return <Empty title="No neighbours">The index has no other vector that the filter lets through.</Empty>;
        }
        return (
          <Table layout="fixed" aria-label="Nearest">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Id</Table.Th>
                <Table.Th w={100} ta="right">
                  {SCORES[index.metric] ?? "Score"}
                </Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {matches.map(({ id, score, metadata }) => (
                <Table.Tr key={id}>
                  <Table.Td>
                    <PageLink change={{ id, near: undefined, filter: undefined }} className="name-link">
                      <Name>{id}</Name>
                    </PageLink>
                    <Text size="xs" c="dimmed" truncate>
                      {JSON.stringify(metadata)}
                    </Text>
                  </Table.Td>
                  <Table.Td ta="right" className="number">
                    {score.toFixed(DIGITS)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        );
      }}
    </Loadable>
  );
}

/** Limit of a pasted vector that is kept in the address, in characters. */
const VECTOR_IN_ADDRESS_MAX = 2_000;

interface Asked {
  vector: number[];
  filter: Record<string, never>;
}

interface NearestProps {
  index: Index;
  near: string;
  filter: string;
  change: Change;
}

/** Nearest neighbours of a pasted vector. */
export function Nearest(props: NearestProps) {
  const { index, change } = props;
  const [near, setNear] = useState(props.near);
  const [filter, setFilter] = useState(props.filter);
  const parsed = (): Asked => ({ vector: parseVector(near, index.dimensions), filter: parseObject(filter) });
  const [asked, setAsked] = useState<Asked | null>(() => {
    try {
      return parsed();
    } catch {
      return null;
    }
  });
  const [problem, setProblem] = useState<string | null>(null);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    try {
      setAsked(parsed());
      setProblem(null);
      // A longer address would be refused by servers.
      change({ near: near.length > VECTOR_IN_ADDRESS_MAX ? "" : near, filter: filter || undefined }, { replace: true });
    } catch (error) {
      setAsked(null);
      setProblem(messageOf(error));
    }
  };
  const close = () => change({ near: undefined, filter: undefined });
  return (
    <Drawer
      opened
      onClose={close}
      position="right"
      size="lg"
      title={`Nearest in ${index.name}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Textarea
            label="Vector"
            description={`${index.dimensions} numbers, as JSON or with spaces between them`}
            required
            autosize
            minRows={3}
            maxRows={10}
            value={near}
            onChange={(event) => setNear(event.currentTarget.value)}
          />
          <JsonInput
            label="Filter"
            description='By metadata, such as { "year": { "$gte": 1990 } }; may be empty'
            validationError="This is no JSON"
            autosize
            minRows={1}
            maxRows={8}
            value={filter}
            onChange={setFilter}
          />
          <Problem of={problem} />
          <Group gap="xs">
            <Button type="submit">Search</Button>
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
          </Group>
          {asked === null ? null : <Neighbours index={index} {...asked} count={NEIGHBOURS_SHOWN} />}
        </Stack>
      </form>
    </Drawer>
  );
}

interface VectorProps {
  index: Index;
  id: string;
  isWritable: boolean;
  onDelete(): void;
  onClose(): void;
}

/** One vector with its metadata, neighbours and values. */
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
    // The values may have changed, and are written together with the metadata.
    const [present] = await vectors.get([vector.id]);
    if (present === undefined) throw new Error("The vector was deleted meanwhile");
    await vectors.upsert([{ id: vector.id, values: present.values, metadata: changed(present.metadata) }]);
  };
  const queryKey = ["vectors", index.name];
  return <MetadataForm stored={vector.metadata} save={save} queryKey={queryKey} isWritable={isWritable} />;
}
