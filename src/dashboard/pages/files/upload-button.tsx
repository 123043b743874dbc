import { Button, FileButton, Group, Modal, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type DragEvent, type ReactNode, type SyntheticEvent, useState } from "react";
import { messageOf, PlatformError } from "../../api/server.ts";
import { IconFolderPlus, IconUpload } from "../../parts/icons.tsx";
import { plainName } from "../../parts/name.tsx";
import { useServer } from "../../shell/view-as.tsx";
import { nameOf, SIGNED_AT_ONCE_MAX } from "./address.ts";
import { type ChosenFile, chosenFiles, droppedFiles, startUploads } from "./uploads.ts";

interface Asked {
  files: readonly ChosenFile[];
  /** Keys of files that exist. */
  present: ReadonlySet<string>;
}

/** Returns a function that uploads to a folder. It asks before replacing files: `dialog` must be rendered. */
export function useUploading(bucket: string) {
  const server = useServer();
  const [asked, setAsked] = useState<Asked | null>(null);
  const presentOf = async (keys: readonly string[]): Promise<string[]> => {
    try {
      return (await server.storage(bucket).signedUrls(keys)).map(({ key }) => key);
    } catch (error) {
      // Unreadable files cannot be looked up.
      if (error instanceof PlatformError && error.code === "forbidden") return [];
      throw error;
    }
  };
  /** Uploads the files that `choose` returns. Uploads nothing if `choose` or the lookup of existing files fails. */
  const upload = async (choose: () => readonly ChosenFile[] | Promise<ChosenFile[]>): Promise<void> => {
    try {
      const files = await choose();
      const keys = files.map(({ key }) => key);
      const parts = Array.from({ length: Math.ceil(keys.length / SIGNED_AT_ONCE_MAX) }, (_, index) =>
        presentOf(keys.slice(index * SIGNED_AT_ONCE_MAX, (index + 1) * SIGNED_AT_ONCE_MAX)),
      );
      const present = new Set((await Promise.all(parts)).flat());
      if (present.size === 0) startUploads(server, bucket, files);
      else setAsked({ files, present });
    } catch (error) {
      notifications.show({ color: "red", title: "Not uploaded", message: messageOf(error) });
    }
  };
  const answer = (files: readonly ChosenFile[]): void => {
    setAsked(null);
    startUploads(server, bucket, files);
  };
  const dialog =
    asked === null ? null : (
      <Modal opened onClose={() => setAsked(null)} title="Replace files?">
        <Text size="sm" mb="md" className="breaking">
          {asked.present.size === 1
            ? `${plainName(nameOf([...asked.present][0] ?? ""))} is there already.`
            : `${asked.present.size} of the files are there already.`}
        </Text>
        <Group gap="xs">
          <Button onClick={() => answer(asked.files)}>Replace</Button>
          {asked.present.size < asked.files.length ? (
            <Button variant="default" onClick={() => answer(asked.files.filter(({ key }) => !asked.present.has(key)))}>
              Upload the others
            </Button>
          ) : null}
          <Button variant="default" onClick={() => setAsked(null)}>
            Cancel
          </Button>
        </Group>
      </Modal>
    );
  return { upload, dialog };
}

type Upload = ReturnType<typeof useUploading>["upload"];

export const UploadButton = ({ prefix, upload }: { prefix: string; upload: Upload }) => (
  <FileButton multiple onChange={(files) => void upload(() => chosenFiles(files, prefix))}>
    {(props) => (
      <Button {...props} leftSection={<IconUpload size={16} aria-hidden />}>
        Upload
      </Button>
    )}
  </FileButton>
);

/** Drop target for uploads of files and folders. */
export function DropPlace({
  prefix,
  upload,
  children,
}: {
  prefix: string;
  upload: Upload | null;
  children: ReactNode;
}) {
  const [isOver, setIsOver] = useState(false);
  if (upload === null) return <div className="files-drop">{children}</div>;
  const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer.types.includes("Files");
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setIsOver(false);
    void upload(() => droppedFiles(event.dataTransfer, prefix));
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the Upload button does the same with the keyboard
    <div
      className="files-drop"
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setIsOver(false);
      }}
      onDrop={drop}
    >
      {children}
      {isOver ? (
        <div className="files-drop-here">
          <Text fw={600}>Drop to upload{prefix === "" ? "" : ` to ${prefix}`}</Text>
        </div>
      ) : null}
    </div>
  );
}

/** Opens a folder that has no files yet. */
export function NewFolder({ prefix, open }: { prefix: string; open(prefix: string): void }) {
  const [name, setName] = useState<string | null>(null);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const wanted = (name ?? "").trim().replace(/^\/+|\/+$/g, "");
    setName(null);
    if (wanted !== "") open(`${prefix}${wanted}/`);
  };
  return (
    <>
      <Button variant="default" leftSection={<IconFolderPlus size={16} aria-hidden />} onClick={() => setName("")}>
        New folder
      </Button>
      <Modal opened={name !== null} onClose={() => setName(null)} title="New folder">
        <form onSubmit={submit}>
          <TextInput
            label="Name"
            description="It is there as soon as it has a file."
            data-autofocus
            value={name ?? ""}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Group gap="xs" mt="md">
            <Button type="submit">Save</Button>
            <Button variant="default" onClick={() => setName(null)}>
              Cancel
            </Button>
          </Group>
        </form>
      </Modal>
    </>
  );
}
