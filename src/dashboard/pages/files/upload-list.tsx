import { ActionIcon, Button, Card, Drawer, Group, Progress, ScrollArea, Stack, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import type { UnfinishedUpload } from "../../../client/admin/stores.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { Ago, bytesText } from "../../parts/format.tsx";
import { IconCheck, IconX } from "../../parts/icons.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { Name, plainName } from "../../parts/name.tsx";
import { Empty } from "../../parts/states.tsx";
import { clearUploads, isOver, removeUpload, retryUpload, type Upload, useUploads } from "./uploads.ts";

const PERCENT = 100;

/** Current, finished and failed uploads to all buckets. */
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

interface UnfinishedProps {
  bucket: string;
  isWritable: boolean;
  onClose(): void;
}

/** Unfinished multipart uploads, whose parts use space until they end. */
export function UnfinishedUploads({ bucket, isWritable, onClose }: UnfinishedProps) {
  const list = usePaged({
    queryKey: ["files", bucket, "unfinished"],
    load: (cursor) => server.buckets.uploads(bucket, { cursor }),
  });
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="lg"
      title={`Unfinished uploads in ${bucket}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        <Paged
          list={list}
          empty={
            <Empty title="No unfinished uploads">
              Large files are sent in parts. An upload that is broken off is here for 24 hours, so that it can go on.
            </Empty>
          }
        >
          {(uploads) =>
            uploads.map((upload) => (
              <UnfinishedLine key={upload.uploadId} bucket={bucket} upload={upload} isWritable={isWritable} />
            ))
          }
        </Paged>
      </Stack>
    </Drawer>
  );
}

function UnfinishedLine({
  bucket,
  upload,
  isWritable,
}: {
  bucket: string;
  upload: UnfinishedUpload;
  isWritable: boolean;
}) {
  const { key, ownerId, parts, size, createdAt } = upload;
  const abort = useMutation({
    mutationFn: () => server.buckets.abort(bucket, upload),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["files", bucket] }),
    onError: (error) => notifications.show({ color: "red", title: "Not aborted", message: messageOf(error) }),
  });
  return (
    <Group justify="space-between" wrap="nowrap" gap="sm" role="group" aria-label={plainName(key)}>
      <Stack gap={0} miw={0}>
        <Text size="sm" truncate component="div">
          <Name>{key}</Name>
        </Text>
        <Text size="xs" c="dimmed">
          {bytesText(size)} in {parts} {parts === 1 ? "part" : "parts"}, begun <Ago time={createdAt} />
          {ownerId === null ? " by a service key" : ` by ${ownerId}`}
        </Text>
      </Stack>
      {isWritable ? (
        <Button
          size="xs"
          color="red"
          variant="light"
          flex="none"
          loading={abort.isPending}
          onClick={() => abort.mutate()}
        >
          Abort
        </Button>
      ) : null}
    </Group>
  );
}
