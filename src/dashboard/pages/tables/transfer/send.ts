import type { Administrator } from "../../../../client/admin/administrator.ts";
import { messageOf, PlatformError } from "../../../api/failure.ts";
import { BATCH_MAX } from "../../../limits.ts";
import { pathOf, type TableAddress } from "../address.ts";
import { IMPORT_BATCH_CHARACTERS } from "../limits.ts";
import { FileMistake, type SourceRecord } from "./records.ts";

export interface Progress {
  /** Records that the server has taken. */
  imported: number;
  bytesRead: number;
}

/** Why an import ended early, with the places of the file at fault. */
export class ImportFailure extends Error {
  readonly imported: number;
  constructor(message: string, imported: number) {
    super(message);
    this.imported = imported;
  }
}

const PAYLOAD_TOO_LARGE = 413;

/**
 * Inserts the records in batches; with `isUpsert`, those whose id exists are updated. Errors: `ImportFailure` that names
 * the lines at fault; of a batch nothing is written then. Ends between two batches when `signal` says so. The first `skipped`
 * records of the file are left out, and count as imported.
 */
export async function importRecords(
  server: Administrator,
  address: TableAddress,
  records: AsyncIterable<SourceRecord>,
  options: { isUpsert: boolean; skipped: number; signal: AbortSignal; onProgress(progress: Progress): void },
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

/** `inserts.3.title` is in the fourth record of the batch. */
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
