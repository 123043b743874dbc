import { ActionIcon, Anchor, Button, FileButton, Group, Image, Input, Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import type { RecordFile, UploadProgress } from "../../../../client/index.ts";
import type { Field, TableSchema } from "../../../api/resources.ts";
import { bytesText } from "../../../parts/format.tsx";
import { IconArrowDown, IconArrowUp, IconTrash, IconUpload } from "../../../parts/icons.tsx";
import { Name, plainName } from "../../../parts/name.tsx";
import { useServer, useViewAs } from "../../../shell/view-as.tsx";
import { iconOf, kindOf } from "../../files/kinds.ts";
import { keyOf, pathOf, type TableAddress } from "../address.ts";
import { filesIn } from "../grid/cell-text.tsx";
import type { Row } from "../rows.ts";

/** A file of a form: a stored one, or a new one. */
type FormFile = RecordFile | File;

const isNew = (file: FormFile): file is File => file instanceof File;

/** Pictures up to this size are shown. */
const PICTURE_MAX_BYTES = 4 * 1024 * 1024;
/** Addresses are signed for an hour, and asked for again before it is over. */
const SIGNED_SECONDS = 3_600;
const SIGNED_STALE_MS = 30 * 60_000;

/** Returns the addresses of a record's files by their ids. An image sends no header, so each is signed for the viewer. */
function useFileAddresses(
  address: TableAddress,
  { fields }: TableSchema,
  stored: Row | null,
): ReadonlyMap<string, string> {
  const server = useServer();
  const as = useViewAs();
  const names = Object.keys(fields).filter((name) => fields[name]?.type === "file");
  const ids = names.flatMap((name) => filesIn(stored?.[name]).map(({ id }) => id));
  const signed = useQuery({
    queryKey: [...keyOf(address), "file addresses", as, stored?.id, ids],
    enabled: stored !== null && ids.length > 0,
    staleTime: SIGNED_STALE_MS,
    async queryFn({ signal }) {
      const query = { fields: names.join(), signFiles: SIGNED_SECONDS };
      const path = `${pathOf(address)}/${encodeURIComponent(stored?.id ?? "")}`;
      const record = await server.request<Row>("GET", path, { query, signal });
      return new Map(names.flatMap((name) => filesIn(record[name]).map(({ id, url }) => [id, url] as const)));
    },
  });
  return signed.data ?? NO_ADDRESSES;
}

const NO_ADDRESSES: ReadonlyMap<string, string> = new Map();

/** Files of a form: the stored ones, until they are edited. */
export function useFormFiles(address: TableAddress, schema: TableSchema, stored: Row | null) {
  const [edited, setEdited] = useState<Readonly<Record<string, readonly FormFile[]>>>({});
  const addresses = useFileAddresses(address, schema, stored);
  return {
    /** Returns the values of the edited fields. */
    given: (): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries(edited).map(([name, files]) => [
          name,
          schema.fields[name]?.many === undefined ? (files[0] ?? null) : files.map(asSent),
        ]),
      ),
    propsOf: (name: string, field: Field) => ({
      name,
      field,
      files: edited[name] ?? filesIn(stored?.[name]),
      addresses,
      onChange: (files: readonly FormFile[]) => setEdited((before) => ({ ...before, [name]: files })),
    }),
  };
}

const asSent = (file: FormFile): { id: string } | File => (isNew(file) ? file : { id: file.id });

/** Bar of the bytes that are sent; nothing while none are. */
export const SendingProgress = ({ of }: { of: UploadProgress | null }) =>
  of === null ? null : <Progress aria-label="Upload" value={of.total === 0 ? 100 : (of.loaded / of.total) * 100} />;

interface FilesInputProps {
  name: string;
  field: Field;
  files: readonly FormFile[];
  /** Addresses of stored files. */
  addresses: ReadonlyMap<string, string>;
  problem: string | null;
  isReadOnly: boolean;
  onChange(files: readonly FormFile[]): void;
}

/** Files of a field: they are looked at, added, removed, and the stored ones put in order. */
export function FilesInput({ name, field, files, addresses, problem, isReadOnly, onChange }: FilesInputProps) {
  const id = useId();
  const isMany = field.many !== undefined;
  const isFull = files.length >= (field.many ?? 1);
  const add = (chosen: readonly File[]): void => {
    if (chosen.length > 0) onChange(isMany ? [...files, ...chosen] : chosen);
  };
  const move = (from: number, to: number): void => {
    const next = [...files];
    next.splice(to, 0, ...next.splice(from, 1));
    onChange(next);
  };
  const stored = files.filter((file) => !isNew(file)).length;
  return (
    <Input.Wrapper
      component="div"
      labelElement="div"
      label={name}
      labelProps={{ id, style: { overflowWrap: "anywhere" } }}
      error={problem}
      withAsterisk={field.required}
    >
      <Stack gap="xs" role="group" aria-labelledby={id}>
        {files.length === 0 && isReadOnly ? (
          <Text size="sm" c="dimmed">
            –
          </Text>
        ) : null}
        {files.map((file, at) => (
          <Group key={isNew(file) ? `new ${at}` : file.id} gap="xs" wrap="nowrap">
            <Preview file={file} address={isNew(file) ? undefined : addresses.get(file.id)} />
            {isReadOnly ? null : (
              <Group gap={2} wrap="nowrap">
                {isMany && stored > 1 && at < stored ? (
                  <>
                    <Act label={`Move ${plainName(file.name)} up`} isDisabled={at === 0} run={() => move(at, at - 1)}>
                      <IconArrowUp size={16} aria-hidden />
                    </Act>
                    <Act
                      label={`Move ${plainName(file.name)} down`}
                      isDisabled={at === stored - 1}
                      run={() => move(at, at + 1)}
                    >
                      <IconArrowDown size={16} aria-hidden />
                    </Act>
                  </>
                ) : null}
                <Act
                  label={`Remove ${plainName(file.name)}`}
                  isDisabled={false}
                  run={() => onChange(files.filter((one) => one !== file))}
                >
                  <IconTrash size={16} aria-hidden />
                </Act>
              </Group>
            )}
          </Group>
        ))}
        {isReadOnly || (isMany && isFull) ? null : (
          <AddButton name={name} field={field} isReplacing={isFull} add={add} />
        )}
      </Stack>
    </Input.Wrapper>
  );
}

function AddButton({
  name,
  field,
  isReplacing,
  add,
}: {
  name: string;
  field: Field;
  isReplacing: boolean;
  add(files: readonly File[]): void;
}) {
  const accept = field.types?.join();
  const text = field.many === undefined ? (isReplacing ? "Replace file" : "Choose file") : "Add files";
  const button = (props: { onClick(): void }) => (
    <Button
      {...props}
      variant="default"
      size="xs"
      w="fit-content"
      aria-label={`${text} of ${name}`}
      leftSection={<IconUpload size={14} aria-hidden />}
    >
      {text}
    </Button>
  );
  const props = accept === undefined ? {} : { accept };
  return field.many === undefined ? (
    <FileButton {...props} onChange={(file) => add(file === null ? [] : [file])}>
      {button}
    </FileButton>
  ) : (
    <FileButton {...props} multiple onChange={add}>
      {button}
    </FileButton>
  );
}

function Act({
  label,
  isDisabled,
  run,
  children,
}: {
  label: string;
  isDisabled: boolean;
  run(): void;
  children: ReactNode;
}) {
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={label} title={label} disabled={isDisabled} onClick={run}>
      {children}
    </ActionIcon>
  );
}

/** A file's picture or icon, its name, which opens it, and its size. */
function Preview({ file, address }: { file: FormFile; address: string | undefined }) {
  const Icon = iconOf(file.type);
  const isShown = address !== undefined && kindOf(file.type) === "picture" && file.size <= PICTURE_MAX_BYTES;
  return (
    <Group gap="xs" wrap="nowrap" flex={1} miw={0}>
      {isShown ? (
        <Image src={address} alt="" w={48} h={48} fit="cover" radius="sm" loading="lazy" />
      ) : (
        <Icon size={24} aria-hidden />
      )}
      <Stack gap={0} miw={0}>
        {address === undefined ? (
          <Text size="sm" truncate>
            <Name>{file.name}</Name>
          </Text>
        ) : (
          <Anchor size="sm" href={address} target="_blank" rel="noreferrer" underline="always" truncate>
            <Name>{file.name}</Name>
          </Anchor>
        )}
        <Text size="xs" c="dimmed">
          {bytesText(file.size)}
          {isNew(file) ? ", not saved yet" : ""}
        </Text>
      </Stack>
    </Group>
  );
}
