// PostgreSQL's protocol, version 3, as far as one connection for the log needs it: messages to bytes, and bytes to messages. Pure.

const PROTOCOL_VERSION = 196_608;
const TLS_REQUEST = 80_877_103;
/** A message from the server may be so long: a page of the log, at most. */
const MESSAGE_MAX_BYTES = 1 << 30;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export type Parameter = string | number | null | Uint8Array;
/** Values as the server writes them; bytes where they were asked for. */
export type Row = readonly (Uint8Array | null)[];

export type ServerMessage =
  | { kind: "authentication"; code: number; data: Uint8Array }
  | { kind: "row"; values: Row }
  | { kind: "notice" | "error"; code: string; text: string }
  | { kind: "ready" }
  | { kind: "other" };

/** Collects a message, whose length stands behind its type. */
class MessageWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  bytes(part: Uint8Array): this {
    this.#parts.push(part);
    this.#length += part.length;
    return this;
  }

  int32(value: number): this {
    const part = new Uint8Array(4);
    new DataView(part.buffer).setInt32(0, value);
    return this.bytes(part);
  }

  int16(value: number): this {
    return this.bytes(Uint8Array.of((value >> 8) & 0xff, value & 0xff));
  }

  text(value: string): this {
    return this.bytes(encoder.encode(value)).bytes(Uint8Array.of(0));
  }

  end(type: string): Uint8Array {
    const head = type.length;
    const message = new Uint8Array(head + 4 + this.#length);
    message.set(encoder.encode(type), 0);
    new DataView(message.buffer).setInt32(head, 4 + this.#length);
    let at = head + 4;
    for (const part of this.#parts) {
      message.set(part, at);
      at += part.length;
    }
    return message;
  }
}

export const tlsRequest = (): Uint8Array => new MessageWriter().int32(TLS_REQUEST).end("");

export function startup(settings: Readonly<Record<string, string>>): Uint8Array {
  const writer = new MessageWriter().int32(PROTOCOL_VERSION);
  for (const [name, value] of Object.entries(settings)) writer.text(name).text(value);
  return writer.bytes(Uint8Array.of(0)).end("");
}

/** Answers an authentication request: a password, or a step of SASL. */
export const password = (data: Uint8Array): Uint8Array => new MessageWriter().bytes(data).end("p");

export const saslStart = (mechanism: string, data: Uint8Array): Uint8Array =>
  new MessageWriter().text(mechanism).int32(data.length).bytes(data).end("p");

export const goodbye = (): Uint8Array => new MessageWriter().end("X");

export interface StatementMessage {
  sql: string;
  parameters: readonly Parameter[];
  /** Name under which the server keeps the statement; "": it does not. */
  name: string;
  /** Whether the server has it under that name already, so that it is neither sent nor planned again. */
  isKnown: boolean;
}

/** One statement in a transaction of its own. Its parameters are texts, or bytes; values of its rows are texts. */
export function statement({ sql, parameters, name, isKnown }: StatementMessage): Uint8Array {
  const bind = new MessageWriter().text("").text(name).int16(parameters.length);
  for (const parameter of parameters) bind.int16(parameter instanceof Uint8Array ? 1 : 0);
  bind.int16(parameters.length);
  for (const parameter of parameters) {
    if (parameter === null) bind.int32(-1);
    else {
      const value = parameter instanceof Uint8Array ? parameter : encoder.encode(String(parameter));
      bind.int32(value.length).bytes(value);
    }
  }
  const execute = new MessageWriter().text("").int32(0).end("E");
  const parse = isKnown ? [] : [new MessageWriter().text(name).text(sql).int16(0).end("P")];
  return Buffer.concat([...parse, bind.int16(0).end("B"), execute, new MessageWriter().end("S")]);
}

/** Cuts what arrives into messages. */
export class MessageReader {
  #rest: Uint8Array = new Uint8Array(0);

  /** Returns the messages that are complete. Errors: a length that cannot be. */
  read(chunk: Uint8Array): ServerMessage[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const messages: ServerMessage[] = [];
    let at = 0;
    while (at + 5 <= bytes.length) {
      const length = view.getInt32(at + 1);
      if (length < 4 || length > MESSAGE_MAX_BYTES) throw new Error(`PostgreSQL sends a message of ${length} bytes`);
      if (at + 1 + length > bytes.length) break;
      messages.push(decode(String.fromCharCode(bytes[at] ?? 0), bytes.subarray(at + 5, at + 1 + length)));
      at += 1 + length;
    }
    this.#rest = bytes.slice(at);
    return messages;
  }
}

function decode(type: string, data: Uint8Array): ServerMessage {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  if (type === "R") return { kind: "authentication", code: view.getInt32(0), data: data.slice(4) };
  if (type === "D") return { kind: "row", values: valuesOf(data, view) };
  if (type === "E" || type === "N") return { kind: type === "E" ? "error" : "notice", ...fieldsOf(data) };
  return type === "Z" ? { kind: "ready" } : { kind: "other" };
}

function valuesOf(data: Uint8Array, view: DataView): Row {
  const values: (Uint8Array | null)[] = [];
  let at = 2;
  for (let left = view.getInt16(0); left > 0; left--) {
    const length = view.getInt32(at);
    at += 4;
    if (length < 0) values.push(null);
    else {
      values.push(data.slice(at, at + length));
      at += length;
    }
  }
  return values;
}

function fieldsOf(data: Uint8Array): { code: string; text: string } {
  const fields = new Map<string, string>();
  for (const field of decoder.decode(data).split("\0")) if (field !== "") fields.set(field.slice(0, 1), field.slice(1));
  return { code: fields.get("C") ?? "", text: fields.get("M") ?? "" };
}
