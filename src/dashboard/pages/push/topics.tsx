import { Table, TextInput } from "@mantine/core";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";
import { IconSearch } from "../../parts/icons.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { PageLink } from "../../parts/name.tsx";
import { Empty } from "../../parts/states.tsx";
import { SendButton } from "./devices.tsx";
import type { Change } from "./state.tsx";

/** The topics that have devices. */
export function Topics({ q, change }: { q: string; change: Change }) {
  const { may } = useRights();
  const maySend = may("push", "*", "*", "send");
  const list = usePaged({
    queryKey: ["push", "topics", q],
    load: (cursor) => server.push.topics({ prefix: q, cursor }),
  });
  return (
    <>
      <TextInput
        aria-label="Search"
        placeholder="Beginning of the topic"
        leftSection={<IconSearch size={16} aria-hidden />}
        maw={280}
        value={q}
        onChange={(event) => change({ q: event.currentTarget.value || undefined }, { replace: true })}
      />
      <Paged
        list={list}
        empty={
          <Empty title={q === "" ? "No topics yet" : "No topic begins so"}>
            Every device is subscribed to <code>all</code> when it registers; apps subscribe to others with{" "}
            <code>client.push.subscribe</code>.
          </Empty>
        }
      >
        {(topics) => (
          <Table highlightOnHover layout="fixed" aria-label="Topics">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Topic</Table.Th>
                <Table.Th w={110} ta="right">
                  Devices
                </Table.Th>
                {maySend ? <Table.Th w={90} aria-label="Actions" /> : null}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {topics.map(({ topic, devices }) => (
                <Table.Tr key={topic}>
                  <Table.Td>
                    <PageLink change={{ view: undefined, q: undefined, topic }} className="name-link">
                      {topic}
                    </PageLink>
                  </Table.Td>
                  <Table.Td ta="right" className="number">
                    {numberText(devices)}
                  </Table.Td>
                  {maySend ? (
                    <Table.Td ta="right">
                      <SendButton to={`topic:${topic}`} change={change} />
                    </Table.Td>
                  ) : null}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </Paged>
    </>
  );
}
