import { Button, Drawer, Group, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { bytesText, numberText, timeText } from "../../../parts/format.ts";
import { IconDownload } from "../../../parts/icons.tsx";
import { Name } from "../../../parts/name.tsx";
import { Empty, Failure, Loadable } from "../../../parts/states.tsx";
import { useServer, useViewAs } from "../../../shell/view-as.tsx";
import { nameOf } from "../address.ts";
import { useAddresses } from "../addresses.ts";
import { Metadata } from "./metadata.tsx";
import { Preview } from "./preview.tsx";
import { SignedLink } from "./signed-link.tsx";

interface FileProps {
  bucket: string;
  file: string;
  isWritable: boolean;
  isDeletable: boolean;
  onDelete(): void;
  onClose(): void;
}

/** One file: what is in it, what is stored beside it, and links to it. */
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
