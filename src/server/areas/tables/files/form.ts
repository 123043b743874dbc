import type { Clock } from "../../../../kernel/clock.ts";
import { badField, badRequest } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import type { FileUpload } from "../../../access/record-files.ts";
import { RECORD_PART } from "../../../config/sections/tables/file-fields.ts";
import type { ArrivingJson } from "../../../http/bodies/arriving-json.ts";
import { bodyChunks } from "../../../http/bodies/body-chunks.ts";
import { parseBoundary } from "../../../http/bodies/form-boundary.ts";
import type { PartHeader } from "../../../http/bodies/form-parts.ts";
import { type PartSink, readForm } from "../../../http/bodies/form-stream.ts";
import type { BodyHash, RequestBasics } from "../../../http/exchange/request-context.ts";
import { FILE_NAME_LENGTH_MAX, FORM_PARTS_MAX, PART_NAME_SHOWN_LENGTH } from "../limits.ts";
import type { FileColumn, TableModel } from "../model/model.ts";
import { countProblem, type NewFile, wrongType } from "./values.ts";

type FormContext = Pick<RequestBasics, "request" | "jsonPart" | "requirePresent">;

/** Whether the request brings files: its body is a form. */
export const isForm = ({ headers }: Request): boolean =>
  /^multipart\/form-data\b/i.test(headers.get("content-type") ?? "");

/** A form that was read: the record's JSON and its files. */
export interface ReceivedForm {
  body: JsonObject;
  /** The files by field, in the order of the form. */
  files: ReadonlyMap<string, readonly NewFile[]>;
}

/** A form with a record and its files. */
export class RecordForm {
  readonly #context: FormContext;
  readonly #clock: Clock;
  #digest: FormDigest | null = null;

  constructor(context: FormContext, clock: Clock) {
    this.#context = context;
    this.#clock = clock;
  }

  /** Hashes the form as `RequestBasics.digestBody` hashes a body: the bytes of each part, and what its header says. [TB732] */
  digestBody({ isUnread, prefix }: { isUnread: boolean; prefix: string }): BodyHash {
    const digest = new FormDigest(prefix);
    this.#digest = digest;
    const read = (): Promise<void> => this.#parts(async () => ({ async take() {}, async end() {} }));
    return { read: isUnread ? read() : Promise.resolve(), digest: () => digest.value() };
  }

  /**
   * Reads the form. `checkBody` is called with the record's JSON before the first file is received. Errors: 400, 408, 413, 415, and
   * those of `checkBody` and `upload`.
   */
  async read(
    model: TableModel,
    upload: FileUpload,
    checkBody: (body: JsonObject) => Promise<void>,
  ): Promise<ReceivedForm> {
    const files = new Map<string, NewFile[]>();
    let body: JsonObject | null = null;
    let json: ArrivingJson | null = null;
    let isChecked = false;
    const open = async (header: PartHeader): Promise<PartSink> => {
      if (header.name === RECORD_PART) {
        if (body !== null)
          throw badField(RECORD_PART, "invalid_value", `${RECORD_PART} must come once, as the first part`);
        body = {};
        const part = this.#context.jsonPart();
        json = part;
        return {
          take: (bytes) => part.take(bytes),
          async end() {
            const value = await part.value();
            if (!isJsonObject(value))
              throw badField(RECORD_PART, "invalid_type", `${RECORD_PART} must be a JSON object`);
            body = value;
          },
        };
      }
      body ??= {};
      if (!isChecked) await checkBody(body);
      isChecked = true;
      const column = fileColumnOf(model, header);
      const known = files.get(column.name) ?? [];
      const problem = countProblem(column, known.length + 1);
      if (problem !== null) throw badField(column.name, problem.code, problem.message);
      const { bucket, maxBytes, types } = column.file;
      const { contentType } = header;
      requireType(column, types, contentType);
      const staged = await upload.begin({ bucket, field: column.name, maxBytes, contentType });
      return {
        take: staged.take,
        async end() {
          staged.end();
          const { id, size, contentType: type } = staged;
          files.set(column.name, [...known, { id, name: fileNameOf(header.fileName), size, type }]);
        },
      };
    };
    try {
      await this.#parts(open);
    } finally {
      // Assigned by `open`.
      (json as ArrivingJson | null)?.release();
    }
    this.#context.requirePresent();
    return { body: body ?? {}, files };
  }

  async #parts(open: (header: PartHeader) => Promise<PartSink>): Promise<void> {
    const { request } = this.#context;
    const boundary = parseBoundary(request.headers.get("content-type"));
    const chunks = bodyChunks(request, this.#clock);
    await readForm(chunks, { boundary, partsMax: FORM_PARTS_MAX }, async (header) => {
      const sink = await open(header);
      return this.#digest?.part(header, sink) ?? sink;
    });
  }
}

function fileColumnOf(model: TableModel, { name, isFile }: PartHeader): FileColumn {
  if (name === null) throw badRequest("A part of the form has no name");
  const column = model.files.find((one) => one.name === name);
  const shown = name.slice(0, PART_NAME_SHOWN_LENGTH);
  if (column === undefined) {
    const known = [RECORD_PART, ...model.files.map((one) => one.name)].join(", ");
    throw badField(shown, "unknown_field", `"${shown}" is not a part of this form, which takes ${known}`);
  }
  if (!isFile) throw badField(name, "invalid_type", `${name} must be a file: its part has no filename`);
  return column;
}

function requireType({ name }: FileColumn, types: readonly string[] | null, declared: string | undefined): void {
  if (types === null) return;
  const found = essenceOf(declared ?? "application/octet-stream");
  const group = `${found.slice(0, found.indexOf("/"))}/*`;
  const isTaken = types.some((type) => type.toLowerCase() === found || type.toLowerCase() === group);
  if (!isTaken) throw wrongType(name, types, found);
}

/** Returns a content type without its parameters. */
const essenceOf = (type: string): string => type.replace(/;.*$/s, "").trim().toLowerCase();

/** A hash of a form that does not depend on its boundary. */
class FormDigest {
  readonly #whole: Bun.CryptoHasher;

  constructor(prefix: string) {
    this.#whole = new Bun.CryptoHasher("sha256").update(prefix);
  }

  /** Hashes a part while `sink` takes it. */
  part({ name, fileName, contentType }: PartHeader, sink: PartSink): PartSink {
    const content = new Bun.CryptoHasher("sha256");
    return {
      take(bytes) {
        content.update(bytes);
        return sink.take(bytes);
      },
      end: () => {
        this.#whole.update(JSON.stringify([name, fileName, contentType ?? null, content.digest("hex")]));
        return sink.end();
      },
    };
  }

  value(): Uint8Array {
    return this.#whole.copy().digest();
  }
}

/** Control characters, and those that reverse what is shown of a name: `exe.gpj` for `jpg.exe`. */
const UNSHOWN = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Returns the name of a file as its record has it: without path and control characters. [TB720] */
function fileNameOf(sent: string | null): string {
  const last = (sent ?? "").toWellFormed().split(/[\\/]/).at(-1) ?? "";
  const name = [...last.replace(UNSHOWN, "").trim()].slice(0, FILE_NAME_LENGTH_MAX).join("");
  return name === "" || name === "." || name === ".." ? "file" : name;
}
