import { TextInput } from "@mantine/core";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { numberText } from "../../parts/format.tsx";
import { IconSearch } from "../../parts/icons.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { PageLink } from "../../parts/name.tsx";
import { Empty } from "../../parts/states.tsx";
import { SendButton } from "./devices.tsx";
import type { Change } from "./state.tsx";

/** Topics that have devices. */
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
          <DataTable
            label="Topics"
            highlightOnHover
            layout="fixed"
            items={topics}
            keyOf={({ topic }) => topic}
            columns={[
              {
                title: "Topic",
                show: ({ topic }) => (
                  <PageLink change={{ view: undefined, q: undefined, topic }} className="name-link">
                    {topic}
                  </PageLink>
                ),
              },
              { title: "Devices", width: 110, isNumber: true, show: ({ devices }) => numberText(devices) },
              ...(maySend
                ? [
                    {
                      width: 90,
                      align: "right" as const,
                      show: ({ topic }: (typeof topics)[number]) => (
                        <SendButton to={`topic:${topic}`} change={change} />
                      ),
                    },
                  ]
                : []),
            ]}
          />
        )}
      </Paged>
    </>
  );
}
