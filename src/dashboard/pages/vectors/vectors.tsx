import { Button, Group, Select, Table, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useResources } from "../../api/resources.ts";
import { queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";
import { IconPlus, IconSearch } from "../../parts/icons.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Name, PageLink } from "../../parts/name.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { deleteSoon, useHidden } from "../../parts/undo.tsx";
import { Insert } from "./insert.tsx";
import { Nearest, OpenVector } from "./neighbours.tsx";
import { hiddenName, type Index, type VectorsState } from "./state.ts";

/** Vectors of an index, and their neighbours. */
export default function VectorsPage() {
  const resources = useResources();
  return (
    <Loadable query={resources}>
      {({ vectorize }) => {
        const [first] = vectorize;
        if (first !== undefined) return <Indexes indexes={vectorize} first={first} />;
        return (
          <Page title="Vectors">
            <Empty title="No indexes are declared">
              Declare some under <code>vectorize</code> in platform.config.ts.
            </Empty>
          </Page>
        );
      }}
    </Loadable>
  );
}

/** Deletes a vector after ten seconds. */
function remove(index: string, id: string): void {
  deleteSoon({
    names: [hiddenName(index, id)],
    message: "One vector deleted",
    run: (sending) =>
      server.request("POST", `/api/vectorize/${encodeURIComponent(index)}`, {
        ...sending,
        body: { action: "delete", ids: [id] },
      }),
    done: () => void queries.invalidateQueries({ queryKey: ["vectors", index] }),
  });
}

function Indexes({ indexes, first }: { indexes: readonly Index[]; first: Index }) {
  const { may } = useRights();
  const { state, change } = usePageState<VectorsState>();
  const index = indexes.find(({ name }) => name === state.index) ?? first;
  const isWritable = may("vectorize", "index", index.name, "write");
  const isReadable = may("vectorize", "index", index.name, "read");
  const { q = "", id, near, filter = "", insert = false } = state;
  return (
    <Page
      title="Vectors"
      actions={
        <>
          {isReadable ? (
            <Button variant="default" onClick={() => change({ near: "" })}>
              Nearest
            </Button>
          ) : null}
          {isWritable ? (
            <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => change({ insert: true })}>
              Insert
            </Button>
          ) : null}
        </>
      }
    >
      <Group gap="xs">
        <Select
          aria-label="Index"
          data={indexes.map(({ name }) => name)}
          value={index.name}
          allowDeselect={false}
          w={200}
          onChange={(next) => change({ index: next ?? index.name, q: undefined, id: undefined })}
        />
        <TextInput
          aria-label="Search"
          placeholder="Beginning of the id"
          leftSection={<IconSearch size={16} aria-hidden />}
          w={240}
          value={q}
          onChange={(event) => change({ q: event.currentTarget.value || undefined }, { replace: true })}
        />
        {isReadable ? <About index={index} /> : null}
      </Group>
      {isReadable ? <Ids index={index} q={q} isWritable={isWritable} /> : null}
      {id === undefined || !isReadable ? null : (
        <OpenVector
          index={index}
          id={id}
          isWritable={isWritable}
          onClose={() => change({ id: undefined })}
          onDelete={() => {
            remove(index.name, id);
            change({ id: undefined });
          }}
        />
      )}
      {near === undefined || !isReadable ? null : (
        <Nearest index={index} near={textOf(near)} filter={textOf(filter)} change={change} key={index.name} />
      )}
      {insert && isWritable ? (
        <Insert
          index={index}
          onClose={() => change({ insert: undefined })}
          onDone={(inserted) => change({ insert: undefined, id: inserted })}
        />
      ) : null}
    </Page>
  );
}

/** Returns a parameter as text. The router parses JSON in hand-written addresses. */
const textOf = (parameter: unknown): string => (typeof parameter === "string" ? parameter : JSON.stringify(parameter));

function About({ index }: { index: Index }) {
  const found = useQuery({
    queryKey: ["vectors", index.name, "about"],
    queryFn: () => server.vectors(index.name).describe(),
  });
  const count = found.data === undefined ? "" : `${numberText(found.data.vectorCount)} vectors, `;
  return (
    <Text size="sm" c="dimmed" className="number">
      {count}
      {numberText(index.dimensions)} dimensions, {index.metric}
    </Text>
  );
}

function Ids({ index, q, isWritable }: { index: Index; q: string; isWritable: boolean }) {
  const hidden = useHidden();
  const list = usePaged({
    queryKey: ["vectors", index.name, "ids", q],
    load: (cursor) => server.vectors(index.name).list({ prefix: q, cursor }),
  });
  const items = list.items?.filter(({ id }) => !hidden.has(hiddenName(index.name, id))) ?? null;
  return (
    <Paged
      list={{ ...list, items }}
      empty={
        <Empty title={q === "" ? "No vectors yet" : "No id begins so"}>
          {isWritable
            ? "Your code upserts vectors, or insert one here."
            : "Your code upserts vectors with app.vectors(name).upsert."}
        </Empty>
      }
    >
      {(vectors) => (
        <Table highlightOnHover layout="fixed" aria-label="Vectors">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={{ base: "50%", sm: "35%" }}>Id</Table.Th>
              <Table.Th>Metadata</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {vectors.map(({ id, metadata }) => (
              <Table.Tr key={id}>
                <Table.Td>
                  <PageLink change={{ id }} className="name-link">
                    <Name>{id}</Name>
                  </PageLink>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" c="dimmed" truncate ff="monospace">
                    {JSON.stringify(metadata)}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </Paged>
  );
}
