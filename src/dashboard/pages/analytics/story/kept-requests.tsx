import { Anchor, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { SlowRequest } from "../../../../client/admin/index.ts";
import { server } from "../../../api/server.ts";
import { millisText, numberText, Time } from "../../../parts/format.tsx";
import { DataTable } from "../../../parts/list/data-table.tsx";
import { TimeRange, useTimeRange } from "../../../parts/list/time-range.tsx";
import { Empty, Loadable } from "../../../parts/states.tsx";

/** Polling interval of the requests. */
const EVERY_MS = 3_000;
const LIMIT = 200;

/** Path of a request, which leads to its page. */
export const RequestPath = ({ request }: { request: SlowRequest }) => {
  const { requestId, status, method, path } = request;
  return (
    <Anchor
      component={Link}
      to={`/analytics/${encodeURIComponent(requestId)}`}
      size="sm"
      ff="monospace"
      display="block"
      truncate
      title={path}
    >
      {status} {method} {path}
    </Anchor>
  );
};

/** Requests whose stories are kept, newest first, in a range of time. */
export function KeptRequests() {
  const range = useTimeRange();
  const { from, to } = range;
  const kept = useQuery({
    queryKey: ["requests", range.key],
    refetchInterval: EVERY_MS,
    queryFn: () =>
      server.request<{ requests: SlowRequest[]; keeps: string }>("GET", "/api/admin/requests", {
        query: { from: from(), to, limit: LIMIT },
      }),
  });
  return (
    <Stack gap="md">
      <Group gap="xs">
        <TimeRange {...range} />
      </Group>
      <Loadable query={kept}>
        {({ requests, keeps }) => (
          <>
            <Text size="sm" c="dimmed">
              {keeps === "all"
                ? "Under platform dev, what each request did is kept: the 1,000 newest since the start."
                : "What slow requests and those answered with 5xx did is kept: the 1,000 newest since the start."}
            </Text>
            {requests.length === 0 ? (
              <Empty title="No requests">None of this time is kept.</Empty>
            ) : (
              <DataTable
                label="Single requests"
                minWidth={720}
                verticalSpacing={4}
                items={requests}
                keyOf={({ requestId }) => requestId}
                columns={[
                  { title: "Request", maxWidth: 420, show: (request) => <RequestPath request={request} /> },
                  { title: "When", show: ({ at }) => <Time time={at} /> },
                  { title: "Caller", show: ({ principal: { kind, name } }) => (kind === "serviceKey" ? name : kind) },
                  { title: "Took", isNumber: true, show: ({ ms }) => millisText(ms) },
                  { title: "Records", isNumber: true, show: ({ rows }) => numberText(rows) },
                ]}
              />
            )}
          </>
        )}
      </Loadable>
    </Stack>
  );
}
