import type { HttpClient } from "../../support/index.ts";

/** A file of a record, as answers have it. */
export interface RecordFile {
  id: string;
  name: string;
  size: number;
  type: string;
  url: string;
}

export interface Sent {
  field: string;
  content: string | Uint8Array<ArrayBuffer>;
  name?: string;
  type?: string;
}

/** Sends a form as a browser sends it: the record's JSON first, then the files. */
export async function sendForm<T = Record<string, unknown>>(
  client: HttpClient,
  path: string,
  {
    method = "POST",
    record,
    files = [],
    headers = {},
  }: { method?: string; record?: unknown; files?: readonly Sent[]; headers?: Record<string, string> },
): Promise<{ status: number; headers: Headers; body: T }> {
  const form = new FormData();
  if (record !== undefined) form.append("record", JSON.stringify(record));
  for (const { field, content, name = "a.txt", type = "text/plain" } of files) {
    form.append(field, new Blob([content], { type }), name);
  }
  const answer = await client.fetch(path, { method, body: form, headers });
  // Each test names what it expects.
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as T };
}

/** Sends a form written by hand: for what FormData would never send. */
export async function sendRawForm(client: HttpClient, path: string, parts: readonly string[]) {
  const body = `${parts.map((part) => `--X\r\n${part}\r\n`).join("")}--X--\r\n`;
  const headers = { "content-type": "multipart/form-data; boundary=X" };
  const answer = await client.fetch(path, { method: "POST", headers, body });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

export const textOf = async (client: HttpClient, url: string): Promise<string> => (await client.fetch(url)).text();
