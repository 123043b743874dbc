import { Code, Select, SimpleGrid, Stack, Text } from "@mantine/core";
import type { JobRecord } from "../../../client/admin/index.ts";
import { Json } from "../../parts/json.tsx";
import { plainName } from "../../parts/name.tsx";
import { usePageState } from "../../parts/page.tsx";
import { Empty } from "../../parts/states.tsx";
import { JobList, StateFilter } from "./job-list.tsx";

/** Deliveries of one webhook: what was sent, and the receiver's response. */
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

/** Delivery of a webhook. Its address, configured headers and signature are secrets, which the server never shows. */
function Delivery({ job: { id, data, state, error, answer } }: { job: JobRecord }) {
  // Form of a delivery's data, written by src/server/areas/webhooks.
  const { type, at, before = null, after = null, instanceId = null } = data as Record<string, unknown>;
  const outcome = state === "done" ? "The receiver has taken it." : (error ?? "Not sent yet.");
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
          {outcome}
        </Text>
        {answer === null ? null : <Answer {...answer} />}
      </div>
    </SimpleGrid>
  );
}

function Answer({ status, contentType, body, isCut }: NonNullable<JobRecord["answer"]>) {
  return (
    <>
      <Text size="xs" c="dimmed" ff="monospace" className="wrapped">
        {contentType === null ? status : `${status}, ${contentType}`}
      </Text>
      {body === "" ? (
        <Text size="xs" c="dimmed">
          Without a body.
        </Text>
      ) : (
        <Code block className="wrapped answer-body" tabIndex={0} role="region" aria-label="Body of the answer">
          {plainName(body)}
          {isCut ? "…" : ""}
        </Code>
      )}
    </>
  );
}
