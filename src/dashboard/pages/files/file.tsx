import { Button, Drawer, Group, Select, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { bytesText, numberText, timeText } from "../../parts/format.tsx";
import { IconDownload, IconLink } from "../../parts/icons.tsx";
import { Name } from "../../parts/name.tsx";
import { Empty, Failure, Loadable, Problem } from "../../parts/states.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { nameOf, useAddresses } from "./address.ts";
import { Metadata } from "./metadata.tsx";
import { Preview } from "./preview.tsx";

interface FileProps {
  bucket: string;
  file: string;
  isWritable: boolean;
  isDeletable: boolean;
  onDelete(): void;
  onClose(): void;
}

/** File with its content, metadata and links. */
export function OpenFile(props: FileProps) {
  const { bucket, file, onClose } = props;
  const server = useServer();
  const as = useViewAs();
  const metadata = useQuery({
    queryKey: ["files", bucket, "file", as, file],
    queryFn: () => server.storage(bucket).metadata(file),
  });
  const addresses = useAddresses(bucket, [file]);
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="lg"
      title={<Name className="breaking">{nameOf(file)}</Name>}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loadable query={metadata}>
        {(found) =>
          found === null ? (
            <Empty title="There is no such file">It may have been deleted meanwhile.</Empty>
          ) : (
            <Stack gap="md">
              {addresses.error === null ? null : (
                <Failure error={addresses.error} onRetry={() => void addresses.refetch()} />
              )}
              <Preview bucket={bucket} file={found} address={addresses.data?.get(file)} key={found.uploaded} />
              <Table variant="vertical" layout="fixed" withTableBorder={false}>
                <Table.Tbody>
                  <Fact name="Key">
                    <Text size="sm" ff="monospace" component="div">
                      <Name>{found.key}</Name>
                    </Text>
                  </Fact>
                  <Fact name="Type">{found.contentType}</Fact>
                  <Fact name="Size">
                    {bytesText(found.size)}
                    {found.size < 1000 ? "" : ` (${numberText(found.size)} bytes)`}
                  </Fact>
                  <Fact name="Changed">{timeText(found.uploaded)}</Fact>
                </Table.Tbody>
              </Table>
              <Group gap="xs">
                <Button
                  component="a"
                  href={addresses.data?.get(file) ?? ""}
                  download={nameOf(file)}
                  data-disabled={addresses.data === undefined}
                  leftSection={<IconDownload size={16} aria-hidden />}
                  variant="default"
                >
                  Download
                </Button>
                {props.isDeletable ? (
                  <Button color="red" variant="light" onClick={props.onDelete}>
                    Delete
                  </Button>
                ) : null}
              </Group>
              <SignedLink bucket={bucket} file={file} key={`link ${file}`} />
              <Metadata bucket={bucket} file={found} isWritable={props.isWritable} key={`metadata ${file}`} />
            </Stack>
          )
        }
      </Loadable>
    </Drawer>
  );
}

const Fact = ({ name, children }: { name: string; children: React.ReactNode }) => (
  <Table.Tr>
    <Table.Th w={96}>{name}</Table.Th>
    <Table.Td className="breaking">{children}</Table.Td>
  </Table.Tr>
);

const HOUR_SECONDS = 3_600;
const LIFETIMES = [
  { value: String(HOUR_SECONDS), label: "1 hour" },
  { value: String(24 * HOUR_SECONDS), label: "1 day" },
  { value: String(7 * 24 * HOUR_SECONDS), label: "7 days" },
];

/** Link with which anyone can read the file until it expires. */
function SignedLink({ bucket, file }: { bucket: string; file: string }) {
  const server = useServer();
  const clipboard = useClipboard();
  const [seconds, setSeconds] = useState(LIFETIMES[0]?.value ?? "");
  const sign = useMutation({
    mutationFn: () => server.storage(bucket).signedUrl(file, { expiresIn: Number(seconds) }),
    // The clipboard API needs a secure origin; elsewhere the link is copied by hand.
    onSuccess: (link) => clipboard.copy(link),
  });
  return (
    <Stack gap="xs" component="section" aria-label="Link">
      <Title order={3} size="h6">
        Link
      </Title>
      <Group gap="xs" align="flex-end">
        <Select
          aria-label="Good for"
          data={LIFETIMES}
          value={seconds}
          allowDeselect={false}
          w={110}
          onChange={(next) => setSeconds(next ?? seconds)}
        />
        <Button
          variant="default"
          leftSection={<IconLink size={16} aria-hidden />}
          loading={sign.isPending}
          onClick={() => sign.mutate()}
        >
          Copy link
        </Button>
      </Group>
      <Problem of={sign.error} />
      {sign.data === undefined ? (
        <Text size="sm" c="dimmed">
          Everybody who has the link may read the file until it ends.
        </Text>
      ) : (
        <TextInput
          aria-label="Signed link"
          readOnly
          value={sign.data}
          description={clipboard.copied ? "Copied" : undefined}
          onFocus={(event) => event.currentTarget.select()}
        />
      )}
    </Stack>
  );
}
