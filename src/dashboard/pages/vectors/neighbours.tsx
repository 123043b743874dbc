import { Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { Name } from "../../parts/name.tsx";
import { PageLink } from "../../parts/page-link.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import type { Index } from "./state.ts";

/** What a score says of two vectors, by the metric of the index. */
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
  /** One that is not shown: the vector itself. */
  except?: string;
  count: number;
}

/** The nearest vectors, the nearest first. */
export function Neighbours({ index, vector, filter = {}, except, count }: NeighboursProps) {
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
