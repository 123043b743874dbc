import { Badge, Group, Select, Stack, Text } from "@mantine/core";
import type { PushLog } from "../../../client/admin/push.ts";
import { server } from "../../api/server.ts";
import { Ago } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Empty } from "../../parts/states.tsx";
import { type Change, type PushState, STATUSES, UserSelect } from "./state.tsx";

const LOGS_EVERY_MS = 2_000;

const COLORS: Readonly<Record<PushLog["status"], string>> = { sent: "green", failed: "red", removed: "yellow" };

/** Outcome of each message per device in the last day. */
export function Log({ state: { user, status }, change }: { state: Partial<PushState>; change: Change }) {
  const wanted = { ...(user === undefined ? {} : { userId: user }), ...(status === undefined ? {} : { status }) };
  const list = usePaged({
    queryKey: ["push", "log", wanted],
    load: (cursor) => server.push.logs({ ...wanted, cursor }),
    refetchInterval: LOGS_EVERY_MS,
  });
  return (
    <>
      <Group gap="xs">
        <UserSelect
          label="User"
          isLabelHidden
          user={user ?? ""}
          onChange={(next) => change({ user: next || undefined })}
        />
        <Select
          aria-label="Status"
          placeholder="Every status"
          clearable
          clearButtonProps={{ "aria-label": "Clear status" }}
          data={[...STATUSES]}
          value={status ?? null}
          onChange={(next) => change({ status: STATUSES.find((one) => one === next) })}
          w={160}
        />
      </Group>
      <Paged
        list={list}
        empty={
          <Empty
            title={Object.keys(wanted).length > 0 ? "No message is like this" : "No messages in the last 24 hours"}
          >
            Send a test message, or from your code with <code>app.push.send</code>.
          </Empty>
        }
      >
        {(rows) => (
          <DataTable
            label="Log"
            minWidth={760}
            layout="fixed"
            items={rows}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Status",
                width: 105,
                show: (row) => (
                  <Badge variant="light" color={COLORS[row.status]}>
                    {row.status}
                  </Badge>
                ),
              },
              {
                title: "Message",
                show: ({ title, body }) => (
                  <Stack gap={0}>
                    <Text size="sm" truncate title={title ?? ""}>
                      {title || "(silent)"}
                    </Text>
                    <Text size="xs" c="dimmed" truncate title={body ?? ""}>
                      {body}
                    </Text>
                  </Stack>
                ),
              },
              {
                title: "Answer",
                show: ({ error }) => (
                  <Text size="sm" lineClamp={2} className="breaking" title={error ?? ""}>
                    {error ?? ""}
                  </Text>
                ),
              },
              {
                title: "User",
                width: 170,
                show: ({ userId }) => (
                  <Text size="sm" truncate ff={userId === null ? "text" : "monospace"} title={userId ?? ""}>
                    {userId ?? "a token"}
                  </Text>
                ),
              },
              { title: "Platform", width: 95, show: ({ platform }) => platform },
              { title: "When", width: 140, show: ({ timestamp }) => <Ago time={timestamp} /> },
            ]}
          />
        )}
      </Paged>
    </>
  );
}
