import { type AppError, badField, tooLarge } from "../../../../kernel/errors.ts";
import type { PartHeader, PartReader } from "../../../http/bodies/form-parts.ts";
import { FORM_FIELD_MAX_BYTES, FORM_NAME_SHOWN_LENGTH, FORM_PARTS_MAX } from "../limits.ts";
import { metadataTooLarge, parseContentType } from "../model/content.ts";
import { parseKey } from "../model/keys.ts";
import type { IncomingFile } from "../model/types.ts";
import type { Arrival } from "../store/quotas.ts";

/** Size limit of a file, and the bytes of it that are stored already: the other parts of its upload. */
export interface SizeLimit {
  maxBytes: number;
  takenBytes?: number;
}

/**
 * Creates a receiver, which writes chunks to a file and counts their bytes. `arrival`: null for bytes that are in memory already.
 * Errors: 413 over the limit or the quota, 507 without room.
 */
export function createReceiver(incoming: IncomingFile, limit: SizeLimit, arrival: Arrival | null) {
  let byteCount = 0;
  return {
    async take(chunk: Uint8Array): Promise<void> {
      byteCount += chunk.byteLength;
      if (byteCount > roomOf(limit)) throw tooBig(limit);
      arrival?.take(chunk.byteLength);
      await incoming.write(chunk);
    },
    get byteCount(): number {
      return byteCount;
    },
  };
}

/** Checks the declared length before anything is read; `overheadBytes` may come beside the file. Errors: 413. */
export function requireDeclaredLength(request: Request, limit: SizeLimit, overheadBytes = 0): void {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > roomOf(limit) + overheadBytes) throw tooBig(limit);
}

const roomOf = ({ maxBytes, takenBytes = 0 }: SizeLimit): number => maxBytes - takenBytes;

export const tooBig = ({ maxBytes }: SizeLimit) => tooLarge(`The file must be at most ${maxBytes} bytes`);

export interface UploadForm {
  key: string | null;
  /** Metadata as sent, unparsed. */
  metadata: string | null;
  /** The file; null when the form has none. */
  file: { contentType: string } | null;
}

type FieldName = "key" | "metadata";

/**
 * Reads a form as it arrives, and awaits `takeFile` with the bytes of its file before it continues. The file's type is the
 * one that its part declares, parameters included, never one guessed from its name. A bad key is refused as soon as it has
 * been read, before a file that follows it. Errors: 400, 413 for metadata.
 */
export async function readUploadForm(
  chunks: AsyncIterable<Uint8Array>,
  boundary: string,
  takeFile: (chunk: Uint8Array) => Promise<void>,
): Promise<UploadForm> {
  const form: UploadForm = { key: null, metadata: null, file: null };
  const found = new Set<string>();
  let fileBytes: Uint8Array[] = [];
  const requireFirst = (name: string): void => {
    if (found.has(name)) throw badField(name, "invalid_value", `${name} must be in the form once`);
    found.add(name);
  };
  const openPart = ({ name, isFile, contentType }: PartHeader): PartReader => {
    if (name === "file") {
      if (!isFile) throw badField(name, "invalid_type", "file must be a file: its part has no filename");
      requireFirst(name);
      form.file = { contentType: parseContentType(contentType) };
      return { take: (bytes) => fileBytes.push(bytes), end() {} };
    }
    if (name !== "key" && name !== "metadata") throw unknownPart(name ?? "");
    requireFirst(name);
    return collectText(name, (text) => {
      form[name] = name === "key" ? parseKey(text) : text;
    });
  };
  // Loaded by the first form, to keep the start fast.
  const { createFormParts } = await import("../../../http/bodies/form-parts.ts");
  const parts = createFormParts(boundary, FORM_PARTS_MAX, openPart);
  const passFile = async (): Promise<void> => {
    const taken = fileBytes;
    fileBytes = [];
    for (const bytes of taken) await takeFile(bytes);
  };

  for await (const chunk of chunks) {
    await parts.push(chunk);
    await passFile();
  }
  await parts.end();
  await passFile();
  return form;
}

function unknownPart(name: string): AppError {
  const shown = name.slice(0, FORM_NAME_SHOWN_LENGTH);
  const message = `"${shown}" is not a part of this form, which takes file, key, metadata`;
  return badField(shown, "unknown_field", message);
}

function collectText(name: FieldName, done: (text: string) => void): PartReader {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  return {
    take(bytes) {
      byteCount += bytes.byteLength;
      if (byteCount > FORM_FIELD_MAX_BYTES) {
        if (name === "metadata") throw metadataTooLarge(`got more than ${FORM_FIELD_MAX_BYTES}`);
        throw badField(name, "too_long", `${name} must be at most ${FORM_FIELD_MAX_BYTES} bytes`);
      }
      // A copy: the memory of a chunk is freed when the next one is read.
      chunks.push(Buffer.from(bytes));
    },
    end() {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      let text: string;
      try {
        text = decoder.decode(Buffer.concat(chunks));
      } catch {
        throw badField(name, "invalid_value", `${name} must be valid UTF-8`);
      }
      done(text);
    },
  };
}
