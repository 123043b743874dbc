import "./files.css";
import { Button, Stack } from "@mantine/core";
import { useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";
import { useViewAs } from "../../shell/view-as.tsx";
import type { FilesState } from "./address.ts";
import { OpenFile } from "./file.tsx";
import { Folder, useDeleteFiles } from "./folder.tsx";
import { Quota, Toolbar } from "./toolbar.tsx";
import { DropPlace, NewFolder, UploadButton, useUploading } from "./upload-button.tsx";
import { UnfinishedUploads, UploadList } from "./upload-list.tsx";

/** Files of buckets, as the key or the viewed-as user sees them. */
export default function FilesPage() {
  const resources = useResources();
  return (
    <Loadable query={resources}>
      {({ buckets }) => {
        const [first] = buckets;
        if (first !== undefined) return <Buckets names={buckets.map(({ name }) => name)} first={first.name} />;
        return (
          <Page title="Files">
            <Empty title="No buckets are declared">
              Declare some under <code>storage.buckets</code> in platform.config.ts.
            </Empty>
          </Page>
        );
      }}
    </Loadable>
  );
}

function Buckets({ names, first }: { names: readonly string[]; first: string }) {
  const { may } = useRights();
  const as = useViewAs();
  const { state, change } = usePageState<FilesState>();
  const { bucket = first, prefix = "", q = "", layout = "list", file, uploads = false } = state;
  // For users the rules decide, which the server evaluates.
  const isWritable = as !== null || may("storage", "bucket", bucket, "write");
  const isDeletable = as !== null || may("storage", "bucket", bucket, "delete");
  const isKey = as === null;
  const { upload, dialog } = useUploading(bucket);
  const remove = useDeleteFiles(bucket);
  return (
    <Page
      title="Files"
      actions={
        <>
          {isKey && may("storage", "bucket", bucket, "read") ? (
            <Button variant="default" onClick={() => change({ uploads: true })}>
              Unfinished uploads
            </Button>
          ) : null}
          {isWritable ? (
            <>
              <NewFolder prefix={prefix} open={(next) => change({ prefix: next, q: undefined })} />
              <UploadButton prefix={prefix} upload={upload} />
            </>
          ) : null}
        </>
      }
    >
      <Toolbar {...{ buckets: names, bucket, prefix, q, layout, change }} />
      {isKey ? <Quota bucket={bucket} /> : null}
      <UploadList />
      <DropPlace prefix={prefix} upload={isWritable ? upload : null}>
        <Stack gap="md">
          <Folder
            key={`${bucket}/${prefix}`}
            {...{ bucket, prefix, q, layout: layout === "pictures" ? layout : "list", isWritable, isDeletable }}
          />
        </Stack>
      </DropPlace>
      {dialog}
      {file === undefined ? null : (
        <OpenFile
          {...{ bucket, file, isWritable, isDeletable }}
          onClose={() => change({ file: undefined })}
          onDelete={() => {
            remove([file]);
            change({ file: undefined });
          }}
        />
      )}
      {uploads ? (
        <UnfinishedUploads bucket={bucket} isWritable={isWritable} onClose={() => change({ uploads: undefined })} />
      ) : null}
    </Page>
  );
}
