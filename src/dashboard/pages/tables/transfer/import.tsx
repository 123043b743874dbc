import { Alert, Button, Checkbox, FileInput, Group, Modal, Progress, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Administrator } from "../../../../client/admin/administrator.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { declaredAs, type TableSchema } from "../../../api/resources.ts";
import { messageOf, PlatformError } from "../../../api/server.ts";
import { BATCH_MAX } from "../../../limits.ts";
import { bytesText, numberText } from "../../../parts/format.tsx";
import { IconFile } from "../../../parts/icons.tsx";
import { Wide } from "../../../parts/list/list.tsx";
import { Loading } from "../../../parts/states.tsx";
import { useServer } from "../../../shell/view-as.tsx";
import { pathOf, type TableAddress } from "../address.ts";
import { cellText } from "../grid/cell-text.tsx";
import { reloadRows } from "../rows.ts";
import { ACCEPTED, FileMistake, readRecords, type SourceRecord } from "./records.ts";

/** Number of records in the preview, and of their fields. */
const PREVIEW_RECORDS = 10;
const PREVIEW_COLUMNS_MAX = 50;

interface ImportProps {
  address: TableAddress;
  schema: TableSchema;
  onClose(): void;
}

type State =
  | { kind: "choosing" }
  | ({ kind: "running" } & Imported)
  | { kind: "done"; imported: number }
  | { kind: "failed"; imported: number; message: string };

/** Dialog that inserts the records of a file, after a preview. */
export default function ImportDialog({ address, schema, onClose }: ImportProps) {
  const server = useServer();
  const [file, setFile] = useState<File | null>(null);
  const [isUpsert, setIsUpsert] = useState(false);
  const [state, setState] = useState<State>({ kind: "choosing" });
  /** Leading records of a file that an earlier attempt imported; null: none. */
  const [already, setAlready] = useState<{ count: number; fileName: string } | null>(null);
  const [isGoingOn, setIsGoingOn] = useState(true);
  const running = useRef<AbortController | null>(null);
  const start = async (chosen: File): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    const skipped = isGoingOn ? (already?.count ?? 0) : 0;
    setState({ kind: "running", imported: skipped, bytesRead: 0 });
    const onProgress = (progress: Imported): void => setState({ kind: "running", ...progress });
    try {
      const records = readRecords(chosen, schema);
      const { signal } = controller;
      const imported = await importRecords(server, address, records, { isUpsert, skipped, signal, onProgress });
      setState({ kind: "done", imported });
    } catch (error) {
      const imported = error instanceof ImportFailure ? error.imported : 0;
      setState({ kind: "failed", imported, message: messageOf(error) });
      setAlready(imported === 0 ? null : { count: imported, fileName: chosen.name });
      setIsGoingOn(true);
    }
    reloadRows(address);
  };
  const isRunning = state.kind === "running";
  return (
    <Modal
      opened
      size="xl"
      onClose={onClose}
      title={`Import into ${address.table}`}
      closeOnClickOutside={!isRunning}
      closeOnEscape={!isRunning}
      withCloseButton={!isRunning}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        <FileInput
          label="File"
          description="CSV, whose first line names the fields, NDJSON, or a JSON array"
          placeholder="Choose a file"
          leftSection={<IconFile size={16} aria-hidden />}
          accept={ACCEPTED}
          value={file}
          disabled={isRunning}
          onChange={(next) => {
            setFile(next);
            setState({ kind: "choosing" });
            // A corrected file usually has the same name as the previous one.
            setIsGoingOn(next !== null && next.name === already?.fileName);
          }}
        />
        {file === null || state.kind !== "choosing" ? null : <Preview file={file} schema={schema} />}
        <Outcome state={state} file={file} table={address.table} />
        {state.kind === "done" ? (
          <Group>
            <Button onClick={onClose}>Close</Button>
          </Group>
        ) : (
          <>
            <Checkbox
              label="Update records whose id exists"
              checked={isUpsert}
              disabled={isRunning}
              onChange={(event) => setIsUpsert(event.currentTarget.checked)}
            />
            {already === null ? null : (
              <Checkbox
                label={`Leave out the first ${recordsText(already.count)}, which the last try has imported`}
                checked={isGoingOn}
                disabled={isRunning}
                onChange={(event) => setIsGoingOn(event.currentTarget.checked)}
              />
            )}
            <Group gap="xs">
              <Button disabled={file === null} loading={isRunning} onClick={() => file !== null && void start(file)}>
                Import
              </Button>
              <Button variant="default" onClick={() => (isRunning ? running.current?.abort() : onClose())}>
                Cancel
              </Button>
            </Group>
          </>
        )}
      </Stack>
    </Modal>
  );
}

const recordsText = (count: number): string => (count === 1 ? "1 record" : `${numberText(count)} records`);

function Outcome({ state, file, table }: { state: State; file: File | null; table: string }) {
  if (state.kind === "choosing") return null;
  const records = recordsText(state.imported);
  if (state.kind === "running") {
    const share = file === null || file.size === 0 ? 0 : (100 * state.bytesRead) / file.size;
    return (
      <Stack gap={4}>
        <Progress value={share} aria-label="Imported" animated transitionDuration={200} />
        <Text size="sm" className="number">
          {records}, {bytesText(state.bytesRead)} of {bytesText(file?.size ?? 0)}
        </Text>
      </Stack>
    );
  }
  if (state.kind === "done") {
    return (
      <Alert color="green" variant="light" role="status">
        {records} imported into {table}
      </Alert>
    );
  }
  return (
    <Alert color="red" variant="light" role="alert" title="The import ended early">
      <Text size="sm" mah={200} style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere", overflowY: "auto" }}>
        {state.message}
      </Text>
      <Text size="sm" mt="xs">
        {records} of the file {state.imported === 1 ? "is" : "are"} in {table}.
      </Text>
    </Alert>
  );
}

/** Reads the first records of the file. */
async function firstOf(file: File, schema: TableSchema): Promise<{ records: JsonObject[]; problem: string | null }> {
  const records: JsonObject[] = [];
  try {
    for await (const { record } of readRecords(file, schema)) {
      if (records.push(record) === PREVIEW_RECORDS) break;
    }
    return { records, problem: null };
  } catch (error) {
    return { records, problem: messageOf(error) };
  }
}

function Preview({ file, schema }: { file: File; schema: TableSchema }) {
  const preview = useQuery({
    queryKey: ["preview", file.name, file.size, file.lastModified],
    queryFn: () => firstOf(file, schema),
    gcTime: 0,
  });
  if (preview.data === undefined) return <Loading rows={3} />;
  const { records, problem } = preview.data;
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const unknown = schema.schemaless ? [] : names.filter((name) => declaredAs(schema.fields, name) === undefined);
  const shown = names.slice(0, PREVIEW_COLUMNS_MAX);
  return (
    <Stack gap="xs" component="section" aria-label="Preview">
      {problem === null ? null : (
        <Alert color="red" variant="light" role="alert">
          {problem}
        </Alert>
      )}
      {unknown.length === 0 ? null : (
        <Alert color="orange" variant="light">
          The table has no field {unknown.join(", ")}: the server refuses these records.
        </Alert>
      )}
      {records.length === 0 && problem === null ? <Text size="sm">The file has no records.</Text> : null}
      {records.length === 0 ? null : (
        <>
          <Wide minWidth={120 * shown.length}>
            <Table fz="xs" verticalSpacing={4} layout="fixed">
              <Table.Thead>
                <Table.Tr>
                  {shown.map((name) => (
                    <Table.Th
                      key={name}
                      {...(unknown.includes(name) ? { c: "var(--mantine-color-error)" } : {})}
                      style={{ overflowWrap: "anywhere" }}
                    >
                      {name}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {records.map((record, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: the records of a file in its order
                  <Table.Tr key={index}>
                    {shown.map((name) => (
                      <Table.Td key={name}>
                        <Text size="xs" truncate>
                          {cellText(record[name], schema.fields[name])}
                        </Text>
                      </Table.Td>
                    ))}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Wide>
          <Text size="xs" c="dimmed">
            The first {records.length === 1 ? "record" : `${records.length} records`} of {bytesText(file.size)}
          </Text>
        </>
      )}
    </Stack>
  );
}

/** Characters in one batch of an import: below the smallest body limit that servers usually have. */
const IMPORT_BATCH_CHARACTERS = 1024 * 1024;

export interface Imported {
  /** Number of records that the server has accepted. */
  imported: number;
  bytesRead: number;
}

/** Cause of an import that ended early, with the faulty positions in the file. */
export class ImportFailure extends Error {
  readonly imported: number;
  constructor(message: string, imported: number) {
    super(message);
    this.imported = imported;
  }
}

const PAYLOAD_TOO_LARGE = 413;

/**
 * Imports records in batches; with `isUpsert`, records with existing ids are updated. Errors: `ImportFailure` with the faulty
 * lines; nothing of that batch is written. An aborted `signal` ends the import between two batches. The first `skipped` records
 * are left out, and count as imported.
 */
export async function importRecords(
  server: Administrator,
  address: TableAddress,
  records: AsyncIterable<SourceRecord>,
  options: { isUpsert: boolean; skipped: number; signal: AbortSignal; onProgress(progress: Imported): void },
): Promise<number> {
  let waiting: SourceRecord[] = [];
  let characters = 0;
  let imported = options.skipped;
  let left = options.skipped;
  const send = async (batch: readonly SourceRecord[]): Promise<void> => {
    options.signal.throwIfAborted();
    const body = { inserts: batch.map(({ record }) => record) };
    const query = options.isUpsert ? { upsert: true } : {};
    try {
      await server.request("POST", `${pathOf(address)}/batch`, { query, body, idempotent: true });
    } catch (error) {
      if (!(error instanceof PlatformError) || error.status !== PAYLOAD_TOO_LARGE || batch.length === 1) {
        throw new FileMistake(refusalOf(error, batch));
      }
      const middle = Math.ceil(batch.length / 2);
      await send(batch.slice(0, middle));
      return send(batch.slice(middle));
    }
    imported += batch.length;
    options.onProgress({ imported, bytesRead: batch.at(-1)?.bytesRead ?? 0 });
  };
  const flush = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    characters = 0;
    if (batch.length > 0) await send(batch);
  };
  try {
    for await (const source of records) {
      if (left-- > 0) continue;
      waiting.push(source);
      characters += JSON.stringify(source.record).length;
      if (waiting.length >= BATCH_MAX || characters >= IMPORT_BATCH_CHARACTERS) await flush();
    }
    await flush();
  } catch (error) {
    throw new ImportFailure(options.signal.aborted ? "Cancelled" : messageOf(error), imported);
  }
  return imported;
}

/** Describes a refusal: `inserts.3.title` is in the fourth record of the batch. */
function refusalOf(error: unknown, batch: readonly SourceRecord[]): string {
  const fields = error instanceof PlatformError ? Object.entries(error.fields) : [];
  const lines = fields.flatMap(([path, { message }]) => {
    const [, index, field] = /^inserts\.(\d+)(?:\.(.+))?$/.exec(path) ?? [];
    const source = index === undefined ? undefined : batch[Number(index)];
    if (source === undefined) return [];
    return [`${source.place}: ${field === undefined || message.includes(field) ? "" : `${field}: `}${message}`];
  });
  if (lines.length > 0) return lines.join("\n");
  return `${batch[0]?.place} to ${batch.at(-1)?.place}: ${messageOf(error)}`;
}
