import { Dicer } from "@fastify/busboy";
import { badRequest } from "../../../kernel/errors.ts";
import { FORM_HEADER_LINES_MAX, FORM_HEADER_MAX_BYTES } from "../limits.ts";

export interface PartHeader {
  /** The field's name; null: the part has no name. */
  name: string | null;
  isFile: boolean;
  /** The file's name; null: the part is no file, or a file without a name. */
  fileName: string | null;
  /** The content type as declared, with its parameters. */
  contentType: string | undefined;
}

/** Receives the content of one part. An error that it throws refuses the form. */
export interface PartReader {
  /** The bytes are valid until the next chunk is pushed. */
  take(bytes: Uint8Array): void;
  end(): void;
}

/**
 * Splits a form into its parts as it arrives, with Dicer, the multipart parser under the package's Busboy. Errors: 400, and those
 * that the parts' readers throw. Busboy itself drops the parameters of a part's content
 * type and skips parts without a name, which must be refused.
 */
export function createFormParts(boundary: string, partsMax: number, openPart: (header: PartHeader) => PartReader) {
  // Dicer supports maxHeaderSize; its types lack it.
  const bounds = { boundary, maxHeaderSize: FORM_HEADER_MAX_BYTES, maxHeaderPairs: FORM_HEADER_LINES_MAX };
  const dicer = new Dicer(bounds);
  const { promise: finished, resolve: finish, reject: fail } = Promise.withResolvers<void>();
  // `push` and `end` report a failure; between two calls nothing awaits it.
  finished.catch(() => {});
  let partCount = 0;
  // Counts the open parts and the form. The closing boundary may be read before the end of the last part is reported.
  let openCount = 1;
  const close = (): void => {
    openCount -= 1;
    if (openCount === 0) finish();
  };
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (cause) {
      fail(cause);
    }
  };

  // `once`: Dicer may emit it for the closing boundary and again for the end of the last part.
  dicer.once("finish", close);
  dicer.on("error", () => fail(badRequest("The form is not valid multipart/form-data, or ends too early")));
  dicer.on("part", (part) => {
    let reader: PartReader | null = null;
    openCount += 1;
    partCount += 1;
    // Throws through the parser: one chunk may contain a hundred thousand parts, and Dicer would parse them all.
    if (partCount > partsMax) throw badRequest(`The form must have at most ${partsMax} parts`);
    part.on("header", (header) =>
      attempt(() => {
        reader = openPart(partHeader(header));
      }),
    );
    part.on("data", (bytes) => attempt(() => reader?.take(typeof bytes === "string" ? Buffer.from(bytes) : bytes)));
    part.on("end", () => {
      attempt(() => {
        if (reader === null) throw badRequest("A part of the form ends within its headers");
        reader.end();
      });
      close();
    });
    part.on("error", () => fail(badRequest("The form ends within a part")));
  });

  return {
    /** Resolves when the chunk has been split and its bytes consumed. */
    async push(chunk: Uint8Array): Promise<void> {
      const { promise: written, resolve } = Promise.withResolvers<void>();
      attempt(() => dicer.write(chunk, () => resolve()));
      // `finished` first: `race` prefers the first of two settled promises, and the chunk may have failed.
      await Promise.race([finished, written]);
    },
    /** Resolves when every part and the form itself have ended. */
    async end(): Promise<void> {
      dicer.end();
      await finished;
    },
  };
}

/** Parses Dicer's header, which maps each lower-case header name to an array of values. */
function partHeader(header: object): PartHeader {
  const values = header as Record<string, string[] | undefined>;
  const found = parametersOf(fromUtf8(values["content-disposition"]?.[0] ?? ""));
  const encodedName = found.get("filename*");
  return {
    name: found.get("name") ?? null,
    isFile: encodedName !== undefined || found.has("filename"),
    fileName: (encodedName === undefined ? null : decodeExtended(encodedName)) ?? found.get("filename") ?? null,
    contentType: values["content-type"]?.[0],
  };
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes a header, of which Dicer makes a character of each byte. One that is no UTF-8 stays as it is. */
function fromUtf8(header: string): string {
  if (!/[\x80-\xff]/.test(header)) return header;
  try {
    return UTF8.decode(Buffer.from(header, "latin1"));
  } catch {
    return header;
  }
}

/**
 * Matches a parameter: in quotes with escapes, as curl writes it; in quotes without escapes, as browsers do, whose names may end
 * with a backslash; or without quotes.
 */
const PARAMETER = /;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"(?=\s*(?:;|$))|"([^"]*)"|([^\s;"]+))/g;

/** Returns the parameters by name; the first value wins. */
function parametersOf(disposition: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name = "", escaped, quoted, bare = ""] of disposition.matchAll(PARAMETER)) {
    const value = escaped?.replace(/\\(["\\])/g, "$1") ?? quoted ?? bare;
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), value);
  }
  return found;
}

/** Decodes `filename*=UTF-8''…`, which accompanies `filename` for non-ASCII names; null: it cannot be decoded. */
function decodeExtended(value: string): string | null {
  const [, encoded] = /^utf-8'[^']*'(.+)$/i.exec(value) ?? [];
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}
