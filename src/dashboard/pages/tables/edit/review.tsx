import { Alert, Badge, Button, Group, Loader, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { numberText } from "../../../parts/format.tsx";
import { Problem } from "../../../parts/states.tsx";
import { Diff } from "./diff.tsx";
import { type Edit, type Preview, preview, type Source, write } from "./source.ts";

/** Dialog with a form that makes edits, and their review before they are written. */
export function EditDialog({
  title,
  source,
  form,
  onClose,
}: {
  title: string;
  source: Source;
  /** Renders the form, which calls this with its edits. It stays as it is during the review. */
  form: (review: (edits: readonly Edit[]) => void) => ReactNode;
  onClose(): void;
}) {
  const [edits, setEdits] = useState<readonly Edit[]>([]);
  const trying = useMutation({ mutationFn: preview });
  const review = (next: readonly Edit[]): void => {
    setEdits(next);
    trying.mutate(next);
  };
  const found = trying.data;
  return (
    <Modal opened onClose={onClose} size="xl" title={title} closeButtonProps={{ "aria-label": "Close" }}>
      <div hidden={found !== undefined}>
        {form(review)}
        <Stack gap="xs" mt="sm">
          {trying.isPending ? <Loader size="sm" aria-label="Trying" /> : null}
          <Problem of={trying.error} />
        </Stack>
      </div>
      {found === undefined ? null : (
        <Review found={found} edits={edits} source={source} onBack={trying.reset} onClose={onClose} />
      )}
    </Modal>
  );
}

function Review({
  found,
  edits,
  source,
  onBack,
  onClose,
}: {
  found: Preview;
  edits: readonly Edit[];
  source: Source;
  onBack(): void;
  onClose(): void;
}) {
  const writing = useMutation({
    mutationFn: () => write(edits, source.revision ?? ""),
    onSuccess() {
      notifications.show({ message: "The config is written, and the server runs with it" });
      onClose();
    },
  });
  const isWritable = source.writable && found.problems.length === 0 && found.diff !== "";
  return (
    <Stack gap="sm">
      {found.diff === "" ? <Text size="sm">Nothing changes.</Text> : <Diff label="What changes" text={found.diff} />}
      <Consequences found={found} />
      {source.writable ? null : (
        <Text size="sm" c="dimmed">
          The config is written under platform dev only. Copy what changes into your config, and deploy it.
        </Text>
      )}
      <Problem of={writing.error} />
      <Group gap="xs">
        {source.writable ? (
          <Button onClick={() => writing.mutate()} loading={writing.isPending} disabled={!isWritable} data-autofocus>
            Write
          </Button>
        ) : (
          <CopyButton text={found.diff} />
        )}
        <Button variant="default" onClick={onBack} disabled={writing.isPending}>
          Back
        </Button>
        <Button variant="default" onClick={onClose} disabled={writing.isPending}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}

function CopyButton({ text }: { text: string }) {
  const [isCopied, setIsCopied] = useState(false);
  return (
    <Button onClick={() => void navigator.clipboard.writeText(text).then(() => setIsCopied(true))}>
      {isCopied ? "Copied" : "Copy"}
    </Button>
  );
}

/** Tells what the edits mean for the stored records, and why they cannot be written. */
function Consequences({ found: { data, migration, problems, warnings } }: { found: Preview }) {
  return (
    <>
      {problems.length === 0 ? null : (
        <Alert color="red" role="alert" title="The server would not start with it">
          <Lines of={problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`))} />
        </Alert>
      )}
      {warnings.length === 0 ? null : (
        <Alert color="orange" title="Look at these places">
          <Lines of={warnings} />
        </Alert>
      )}
      {migration === null ? null : (
        <Alert color="orange" title="This cannot be undone">
          <Text size="sm">The migration removes stored values: {migration}</Text>
        </Alert>
      )}
      {data === null || data.unfit > 0 ? null : (
        <Group gap="xs">
          <Badge color="green" variant="light" tt="none">
            Fits
          </Badge>
          <Text size="sm">All stored records stay as they are ({numberText(data.files)} database files compared).</Text>
        </Group>
      )}
    </>
  );
}

const Lines = ({ of }: { of: readonly string[] }) => (
  <Stack gap={4}>
    {of.map((line) => (
      <Text key={line} size="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
        {line}
      </Text>
    ))}
  </Stack>
);
