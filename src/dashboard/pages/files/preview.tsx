import { Center, Code, Image, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { FileMetadata } from "../../../client/storage/types.ts";
import { bytesText } from "../../parts/format.tsx";
import { Loadable, Loading } from "../../parts/states.tsx";
import { useServer, useViewAs } from "../../shell/view-as.tsx";
import { nameOf } from "./address.ts";
import { kindOf } from "./kinds.ts";

/** Bytes of a text that are shown, and limits of files that are loaded whole. */
const TEXT_SHOWN_BYTES = 64 * 1024;
const PDF_SHOWN_MAX_BYTES = 32 * 1024 * 1024;

interface PreviewProps {
  bucket: string;
  file: FileMetadata;
  /** Signed address on this origin; undefined while it is loading. */
  address: string | undefined;
}

/**
 * Previews an untrusted file. Images, including SVG, are shown as `img`, which runs no scripts; HTML and other texts are shown as
 * text; a frame receives a blob typed as PDF, even if the file has changed. No file is ever opened as a page of this origin.
 */
export function Preview(props: PreviewProps) {
  const { file, address } = props;
  if (file.size === 0) return <Nothing>The file is empty.</Nothing>;
  switch (kindOf(file.contentType)) {
    case "picture":
      return address === undefined ? <Loading rows={4} /> : <Picture name={nameOf(file.key)} address={address} />;
    case "film":
      return address === undefined ? <Loading rows={4} /> : <Media kind="video" {...props} />;
    case "sound":
      return address === undefined ? <Loading rows={1} /> : <Media kind="audio" {...props} />;
    case "pdf":
      // Browsers with the viewer missing or disabled would download the PDF without asking.
      if (!navigator.pdfViewerEnabled) return <Nothing>This browser shows no PDFs: download it.</Nothing>;
      return file.size > PDF_SHOWN_MAX_BYTES ? (
        <Nothing>PDFs of more than {bytesText(PDF_SHOWN_MAX_BYTES)} are not shown here: download it.</Nothing>
      ) : (
        <Pdf {...props} />
      );
    case "text":
      return <TextStart {...props} />;
    default:
      return <Nothing>Files of the type {file.contentType} are not shown here: download it.</Nothing>;
  }
}

const Nothing = ({ children }: { children: React.ReactNode }) => (
  <Center mih={96} className="file-preview" p="md">
    <Text size="sm" c="dimmed" ta="center">
      {children}
    </Text>
  </Center>
);

function Picture({ name, address }: { name: string; address: string }) {
  const [isBroken, setIsBroken] = useState(false);
  if (isBroken) return <Nothing>The browser cannot show this picture.</Nothing>;
  return (
    <Center className="file-preview file-checkers" p="xs">
      <Image src={address} alt={name} fit="contain" mah={420} w="auto" onError={() => setIsBroken(true)} />
    </Center>
  );
}

function Media({ kind: Kind, file, address }: PreviewProps & { kind: "video" | "audio" }) {
  const [isBroken, setIsBroken] = useState(false);
  if (isBroken) return <Nothing>The browser cannot play files of the type {file.contentType}.</Nothing>;
  return (
    <div className="file-preview">
      <Kind
        src={address}
        controls
        preload="metadata"
        className="file-media"
        aria-label={nameOf(file.key)}
        onError={() => setIsBroken(true)}
      />
    </div>
  );
}

/** Loads the first bytes of the file, converted by `read`. */
function useContent<T>({ bucket, file }: PreviewProps, maxBytes: number, read: (blob: Blob) => T | Promise<T>) {
  const server = useServer();
  const as = useViewAs();
  return useQuery({
    queryKey: ["files", bucket, "content", as, file.key, file.uploaded],
    queryFn: async ({ signal }) => read(await server.storage(bucket).download(file.key, { maxBytes, signal })),
  });
}

function Pdf(props: PreviewProps) {
  const content = useContent(props, PDF_SHOWN_MAX_BYTES, (blob) => new Blob([blob], { type: "application/pdf" }));
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    if (content.data === undefined) return;
    const made = URL.createObjectURL(content.data);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [content.data]);
  return (
    <Loadable query={content} rows={6}>
      {() =>
        address === null ? null : (
          <iframe src={address} title={nameOf(props.file.key)} className="file-preview file-pdf" />
        )
      }
    </Loadable>
  );
}

function TextStart(props: PreviewProps) {
  const { size } = props.file;
  const content = useContent(props, TEXT_SHOWN_BYTES, (blob) => blob.text());
  return (
    <Loadable query={content} rows={6}>
      {(text) => (
        <Stack gap={4}>
          <Code block className="file-text" tabIndex={0} role="region" aria-label="Content">
            {text}
          </Code>
          {size > TEXT_SHOWN_BYTES ? (
            <Text size="xs" c="dimmed">
              The first {bytesText(TEXT_SHOWN_BYTES)} of {bytesText(size)}.
            </Text>
          ) : null}
        </Stack>
      )}
    </Loadable>
  );
}
