import { Select, SimpleGrid, Stack, Text } from "@mantine/core";
import type { JobRecord } from "../../../../client/admin/index.ts";
import { usePageState } from "../../parts/address.ts";
import { Json } from "../../parts/json.tsx";
import { Empty } from "../../parts/states.tsx";
import { JobList } from "./job-list.tsx";
import { StateFilter } from "./state-filter.tsx";

/** Deliveries of one webhook: what was sent, and what the receiver said. */
export function Webhooks({ names }: { names: readonly string[] }) {
  const { state, change } = usePageState<{ webhook: string }>();
  const name = state.webhook ?? names[0];
  if (name === undefined) {
    return (
      <Empty title="No webhooks">
        Declare what is told to other systems under <code>webhooks</code>.
      </Empty>
    );
  }
  return (
    <Stack gap="md">
      <Select
        label="Webhook"
        w={280}
        data={[...names]}
        value={name}
        allowDeselect={false}
        onChange={(next) => change({ webhook: next ?? undefined })}
      />
      <StateFilter />
      <JobList
        name={`webhook:${name}`}
        empty={<Empty title="No deliveries">The webhook has had nothing to tell, or not of this state.</Empty>}
        detailOf={(job) => <Delivery job={job} />}
      />
    </Stack>
  );
}

/** The address, headers of the config and the signature are secrets: the server shows them to nobody. */
function Delivery({ job: { id, data, state, error } }: { job: JobRecord }) {
  // What the server has written down for a delivery: src/webhooks sends it in this form.
  const { type, at, before = null, after = null, instanceId = null } = data as Record<string, unknown>;
  const answer = state === "done" ? "The receiver has taken it, with a 2xx status." : (error ?? "Not sent yet.");
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <div>
        <Text size="sm" fw={600}>
          Request
        </Text>
        <Text size="xs" c="dimmed" ff="monospace" className="wrapped">
          POST, webhook-id: {id}
        </Text>
        <Json value={{ type, timestamp: at, data: { before, after, instanceId } }} />
      </div>
      <div>
        <Text size="sm" fw={600}>
          Answer
        </Text>
        <Text size="sm" className="wrapped">
          {answer}
        </Text>
      </div>
    </SimpleGrid>
  );
}
