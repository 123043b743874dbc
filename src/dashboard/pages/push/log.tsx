import { Badge, Group, Select, Stack, Table, Text } from "@mantine/core";
import type { PushLog } from "../../../client/admin/push.ts";
import { server } from "../../api/server.ts";
import { Ago } from "../../parts/format.tsx";
import { Paged, usePaged, Wide } from "../../parts/list/list.tsx";
import { Empty } from "../../parts/states.tsx";
import { type Change, type PushState, STATUSES, UserSelect } from "./state.tsx";

const LOGS_EVERY_MS = 2_000;

const COLORS: Readonly<Record<PushLog["status"], string>> = { sent: "green", failed: "red", removed: "yellow" };

/** What became of each message and device in the last day. */
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
          <Wide minWidth={760}>
            <Table layout="fixed" aria-label="Log">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th w={105}>Status</Table.Th>
                  <Table.Th>Message</Table.Th>
                  <Table.Th>Answer</Table.Th>
                  <Table.Th w={170}>User</Table.Th>
                  <Table.Th w={95}>Platform</Table.Th>
                  <Table.Th w={140}>When</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map((row) => (
                  <Line key={row.id} row={row} />
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
        )}
      </Paged>
    </>
  );
}

const Line = ({ row: { status, title, body, error, userId, platform, timestamp } }: { row: PushLog }) => (
  <Table.Tr>
    <Table.Td>
      <Badge variant="light" color={COLORS[status]}>
        {status}
      </Badge>
    </Table.Td>
    <Table.Td>
      <Stack gap={0}>
        <Text size="sm" truncate title={title ?? ""}>
          {title || "(silent)"}
        </Text>
        <Text size="xs" c="dimmed" truncate title={body ?? ""}>
          {body}
        </Text>
      </Stack>
    </Table.Td>
    <Table.Td>
      <Text size="sm" lineClamp={2} className="breaking" title={error ?? ""}>
        {error ?? ""}
      </Text>
    </Table.Td>
    <Table.Td>
      <Text size="sm" truncate ff={userId === null ? "text" : "monospace"} title={userId ?? ""}>
        {userId ?? "a token"}
      </Text>
    </Table.Td>
    <Table.Td>{platform}</Table.Td>
    <Table.Td>
      <Ago time={timestamp} />
    </Table.Td>
  </Table.Tr>
);
