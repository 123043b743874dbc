import { Dicer } from "@fastify/busboy";
import { AppError, badField, badRequest, unsupportedMediaType } from "../../kernel/errors.ts";
import { metadataTooLarge, parseContentType } from "../content.ts";
import {
  FORM_FIELD_MAX_BYTES,
  FORM_HEADER_LINES_MAX,
  FORM_HEADER_MAX_BYTES,
  FORM_NAME_SHOWN_LENGTH,
  FORM_PARTS_MAX,
} from "../limits.ts";

export interface UploadForm {
  key: string | null;
  metadata: string | null;
  /** null: the form had no file. */
  file: { contentType: string } | null;
}

const FIELDS = ["key", "metadata"] as const;
type FieldName = (typeof FIELDS)[number];

/** The boundary of a form. Errors: 415 for another or no content type, 400 without a boundary. */
export function parseBoundary(contentType: string | null): string {
  if (contentType === null || !/^multipart\/form-data\s*(?:;|$)/i.test(contentType)) {
    throw unsupportedMediaType(`The body must be multipart/form-data, got ${contentType ?? "no content type"}`);
  }
  const match = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw badRequest("The multipart/form-data content type has no boundary");
  return boundary;
}

/**
 * Reads a form as it arrives and hands the bytes of its part `file` on, waiting for `takeFile` between chunks. The type
 * of the file is what its part declares, parameters included, never one guessed from its name. Errors: 400.
 */
export async function readUploadForm(
  chunks: AsyncIterable<Uint8Array>,
  boundary: string,
  takeFile: (chunk: Uint8Array) => Promise<void>,
  /** Asked as soon as the key is known, where it stands before the file. */
  onKey: (key: string) => void,
): Promise<UploadForm> {
  const reader = createFormReader(boundary, onKey);
  for await (const chunk of chunks) {
    await reader.push(chunk);
    for (const bytes of reader.fileChunks()) await takeFile(bytes);
  }
  await reader.end();
  for (const bytes of reader.fileChunks()) await takeFile(bytes);
  return reader.form;
}

function createFormReader(boundary: string, onKey: (key: string) => void) {
  const form: UploadForm = { key: null, metadata: null, file: null };
  // The parser knows maxHeaderSize, its types do not.
  const bounds = { boundary, maxHeaderSize: FORM_HEADER_MAX_BYTES, maxHeaderPairs: FORM_HEADER_LINES_MAX };
  const dicer = new Dicer(bounds);
  let fileBytes: Uint8Array[] = [];
  let partCount = 0;
  const named = new Set<string>();
  let failure: AppError | null = null;
  // The closing boundary may be read before the last part's end is announced: the form is whole when both have happened.
  let openPartCount = 0;
  let isClosed = false;
  const finished = Promise.withResolvers<void>();
  const settle = (): void => {
    if (isClosed && openPartCount === 0) finished.resolve();
  };
  // A failure is looked at between chunks; until then nobody waits for this promise.
  finished.promise.catch(() => {});
  const fail = (problem: AppError): void => {
    failure ??= problem;
    finished.reject(failure);
  };
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause;
      fail(cause);
    }
  };
  const throwFailure = (): void => {
    if (failure !== null) throw failure;
  };

  dicer.on("finish", () => {
    isClosed = true;
    settle();
  });
  dicer.on("error", () => fail(badRequest("The form is not valid multipart/form-data, or broke off")));
  dicer.on("part", (part) => {
    let take: (bytes: Uint8Array) => void = () => {};
    let done = () => {};
    openPartCount++;
    if (++partCount > FORM_PARTS_MAX) fail(badRequest(`The form must have at most ${FORM_PARTS_MAX} parts`));
    part.on("header", (header) =>
      attempt(() => {
        const { name, isFile, contentType } = partHeader(header);
        if (name === "file") {
          if (!isFile) throw badField(name, "invalid_type", "file must be a file: its part has no filename");
          requireFirst(named, name);
          form.file = { contentType: parseContentType(contentType) };
          take = (bytes) => fileBytes.push(bytes);
        } else if (isFieldName(name)) {
          requireFirst(named, name);
          const text = collectText(name);
          take = text.take;
          done = () => {
            form[name] = text.read();
            if (name === "key") onKey(form.key ?? "");
          };
        } else throw unknownPart(name ?? "");
      }),
    );
    part.on("data", (bytes) => attempt(() => take(typeof bytes === "string" ? Buffer.from(bytes) : bytes)));
    part.on("end", () => {
      attempt(() => done());
      openPartCount--;
      settle();
    });
    part.on("error", () => fail(badRequest("The form broke off within a part")));
  });

  return {
    form,
    async push(chunk: Uint8Array): Promise<void> {
      throwFailure();
      const written = Promise.withResolvers<void>();
      dicer.write(chunk, () => written.resolve());
      await Promise.race([written.promise, finished.promise]);
      throwFailure();
    },
    async end(): Promise<void> {
      dicer.end();
      await finished.promise;
      throwFailure();
    },
    fileChunks(): Uint8Array[] {
      const taken = fileBytes;
      fileBytes = [];
      return taken;
    },
  };
}

function unknownPart(name: string): AppError {
  const shown = name.slice(0, FORM_NAME_SHOWN_LENGTH);
  const message = `"${shown}" is not a part of this form, which takes file, key, metadata`;
  return badField(shown, "unknown_field", message);
}

/** Which of two were meant, nobody could say. Errors: 400. */
function requireFirst(named: Set<string>, name: string): void {
  if (named.has(name)) throw badField(name, "invalid_value", `${name} must be in the form once`);
  named.add(name);
}

const isFieldName = (name: string | null): name is FieldName => FIELDS.some((known) => known === name);

function collectText(name: FieldName) {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  return {
    take(bytes: Uint8Array) {
      byteCount += bytes.byteLength;
      if (byteCount > FORM_FIELD_MAX_BYTES) {
        if (name === "metadata") throw metadataTooLarge(`got more than ${FORM_FIELD_MAX_BYTES}`);
        throw badField(name, "too_long", `${name} must be at most ${FORM_FIELD_MAX_BYTES} bytes`);
      }
      // A copy: the body's chunk is gone with the next one.
      chunks.push(Uint8Array.from(bytes));
    },
    read(): string {
      try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
      } catch {
        throw badField(name, "invalid_value", `${name} must be valid UTF-8`);
      }
    },
  };
}

/** Dicer gives each header's values as an array of strings under its lower-cased name. */
function partHeader(header: object): { name: string | null; isFile: boolean; contentType: string | undefined } {
  const values = header as Record<string, string[] | undefined>;
  const disposition = values["content-disposition"]?.[0] ?? "";
  const name = /;\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(disposition);
  return {
    name: name?.[1] ?? name?.[2] ?? null,
    isFile: /;\s*filename\*?=/i.test(disposition),
    contentType: values["content-type"]?.[0],
  };
}
