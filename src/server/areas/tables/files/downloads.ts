import { AppError, notFound } from "../../../../kernel/errors.ts";
import { chain, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Principal } from "../../../access/principal.ts";
import type { RecordFiles } from "../../../access/record-files.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { RecordFile, TableRecord } from "../../../config/types.ts";
import { ownOrigin } from "../../../http/exchange/own-origin.ts";
import { DOWNLOAD_ATTEMPTS_MAX, SIGNED_DEFAULT_SECONDS } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { GetValues, ReadRequest } from "../model/requests.ts";
import type { FileSigning } from "./signing.ts";
import { baseOf, filesIn, urlOf } from "./values.ts";

/** Address of a file of a record. */
export interface FileOfRecord {
  id: string;
  field: string;
  fileId: string;
}

export interface DownloadRequest extends ReadRequest<{ thumb?: string; token?: string }> {
  readonly request: Request;
  peek(name: string): string | null;
}

export interface SignRequest extends ReadRequest<unknown> {
  readonly request: Request;
  body(): Promise<{ expiresIn?: number | null | undefined }>;
}

/** Answers a file to who may read its record. [TB727] */
export function createDownloads(deps: {
  get(asked: ReadRequest<GetValues>, address: TableAddress, id: string): MaybePromise<TableRecord>;
  modelOf(address: TableAddress): TableModel;
  files: () => RecordFiles;
  signing: FileSigning;
  publicUrl: string | null;
}) {
  const find = (asked: ReadRequest<unknown>, address: TableAddress, { id, field, fileId }: FileOfRecord) => {
    const reading: ReadRequest<GetValues> = {
      principal: asked.principal,
      callerName: asked.callerName,
      signal: asked.signal,
      query() {
        asked.query();
        return {};
      },
    };
    return chain(deps.get(reading, address, id), (record): RecordFile => {
      const column = deps.modelOf(address).files.find(({ name }) => name === field);
      const found = column === undefined ? undefined : filesIn(record[field]).find((file) => file.id === fileId);
      if (found === undefined) throw notFound(`The record has no file "${fileId}" in ${field}`);
      return found;
    });
  };
  return {
    async file(asked: DownloadRequest, address: TableAddress, at: FileOfRecord): Promise<Response> {
      const { request } = asked;
      const { namespace, instanceId } = address;
      const token = asked.peek("token");
      const signed = () => deps.signing.signerOf(pathOf(address, at), token ?? "");
      const asker = token === null ? asked : readingAs(asked, signed());
      const isPublic = deps.modelOf(address).config.access?.read === true;
      for (let attempt = 1; ; attempt++) {
        const file = await find(asker, address, at);
        const { thumb } = asked.query();
        try {
          return await deps.files().answer({ request, thumb, isPublic }, { namespace, instanceId, file }, asked);
        } catch (cause) {
          // Bytes that are missing belong to a file that was removed meanwhile: the record tells.
          const isMissing = cause instanceof AppError && (cause.status === 503 || cause.status === 404);
          if (!isMissing || attempt === DOWNLOAD_ATTEMPTS_MAX) throw cause;
        }
      }
    },

    /** Signs the url of a file that the caller may read. */
    async signFile(asked: SignRequest, address: TableAddress, at: FileOfRecord): Promise<{ url: string }> {
      await find(asked, address, at);
      const { expiresIn } = await asked.body();
      const sign = deps.signing.signing(asked.principal, expiresIn ?? SIGNED_DEFAULT_SECONDS);
      return { url: (deps.publicUrl ?? ownOrigin(asked.request)) + sign(pathOf(address, at)) };
    },
  };
}

const pathOf = (address: TableAddress, { id, field, fileId }: FileOfRecord): string =>
  urlOf(baseOf(address), id, field, fileId);

const readingAs = (
  { callerName, signal, query }: DownloadRequest,
  principal: Principal,
): ReadRequest<{ thumb?: string; token?: string }> => ({ principal, callerName, signal, query: () => query() });
