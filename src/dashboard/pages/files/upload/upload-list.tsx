import { ActionIcon, Button, Card, Group, Progress, ScrollArea, Stack, Text, Title } from "@mantine/core";
import { bytesText } from "../../../parts/format.ts";
import { IconCheck, IconX } from "../../../parts/icons.tsx";
import { Name, plainName } from "../../../parts/name.tsx";
import { clearUploads, isOver, removeUpload, retryUpload, type Upload, useUploads } from "./uploads.ts";

const PERCENT = 100;

/** What is sent, has been sent and could not be sent, of all buckets. */
export function UploadList() {
  const uploads = useUploads();
  if (uploads.length === 0) return null;
  const doneCount = uploads.filter(({ state }) => state.kind === "done").length;
  return (
    <Card withBorder component="section" aria-label="Uploads" p="sm" className="files-uploads">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h6" aria-live="polite">
          {doneCount} of {uploads.length} uploaded
        </Title>
        {uploads.some(isOver) ? (
          <Button size="compact-xs" variant="default" onClick={clearUploads}>
            Clear
          </Button>
        ) : null}
      </Group>
      <ScrollArea.Autosize mah={220} viewportProps={{ tabIndex: 0, role: "group", "aria-label": "Uploaded files" }}>
        <Stack gap="xs">
          {uploads.map((upload) => (
            <Line key={upload.id} upload={upload} />
          ))}
        </Stack>
      </ScrollArea.Autosize>
    </Card>
  );
}

function Line({ upload }: { upload: Upload }) {
  const { id, bucket, key, loaded, total, state } = upload;
  const isFailed = state.kind === "failed";
  return (
    <Group gap="xs" wrap="nowrap">
      <Stack gap={2} flex={1} miw={0}>
        <Group gap="xs" wrap="nowrap" justify="space-between">
          <Text size="sm" truncate component="div">
            <Name>{`${bucket}/${key}`}</Name>
          </Text>
          <Text size="xs" c="dimmed" className="number" flex="none">
            {state.kind === "waiting" ? "Waiting" : `${bytesText(loaded)} of ${bytesText(total)}`}
          </Text>
        </Group>
        {isFailed ? (
          <Text size="xs" c="var(--mantine-color-error)">
            {state.message}
          </Text>
        ) : (
          <Progress
            size="sm"
            value={total === 0 ? (state.kind === "done" ? PERCENT : 0) : (loaded / total) * PERCENT}
            color={state.kind === "done" ? "green" : "ink"}
            aria-label={`Progress of ${plainName(key)}`}
          />
        )}
      </Stack>
      {state.kind === "done" ? (
        <IconCheck size={18} aria-label="Uploaded" color="var(--mantine-color-green-7)" />
      ) : (
        <>
          {isFailed ? (
            <Button size="compact-xs" variant="default" onClick={() => retryUpload(id)}>
              Retry
            </Button>
          ) : null}
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Cancel ${plainName(key)}`}
            onClick={() => removeUpload(id)}
          >
            <IconX size={16} aria-hidden />
          </ActionIcon>
        </>
      )}
    </Group>
  );
}
