import { Button, Drawer, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import type { UnfinishedUpload } from "../../../../client/admin/stores.ts";
import { messageOf } from "../../../api/failure.ts";
import { queries, server } from "../../../api/server.ts";
import { bytesText } from "../../../parts/format.ts";
import { Paged, usePaged } from "../../../parts/list/paged.tsx";
import { Name, plainName } from "../../../parts/name.tsx";
import { Empty } from "../../../parts/states.tsx";
import { Ago } from "../../../parts/time.tsx";

interface UnfinishedProps {
  bucket: string;
  isWritable: boolean;
  onClose(): void;
}

/** Uploads in parts that have begun and not ended; their parts take room until then. */
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
              <Line key={upload.uploadId} bucket={bucket} upload={upload} isWritable={isWritable} />
            ))
          }
        </Paged>
      </Stack>
    </Drawer>
  );
}

function Line({ bucket, upload, isWritable }: { bucket: string; upload: UnfinishedUpload; isWritable: boolean }) {
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
