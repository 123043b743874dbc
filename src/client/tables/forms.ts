import { isJsonObject } from "../../kernel/json/json.ts";
import type { ClientContext } from "../context.ts";
import { reporting, sendingOf } from "../storage/sending.ts";
import type { UploadOptions } from "../storage/types.ts";
import { localError } from "../transport/errors.ts";
import type { FilePart, TableWrite } from "./writes.ts";

/** Options of a write with files. They have no effect on others. */
export type FormOptions = Pick<UploadOptions, "onProgress" | "signal">;

/**
 * Returns a function that sends a write with files, as a form. `write` then shows what is known of the record: a list has the
 * files that stay, and a field of one file is absent. Errors: `network` while the browser is offline, as files are not kept.
 */
export function formOf(
  context: ClientContext,
  { operations, request }: TableWrite,
  files: readonly FilePart[],
  { onProgress, signal }: FormOptions = {},
): () => Promise<unknown> {
  if (globalThis.navigator?.onLine === false) throw localError("network", "Files need a connection");
  const { method, path, query, body = {}, idempotencyKey } = request;
  for (const values of [body, ...operations.flatMap<unknown>(Object.values).filter(isJsonObject)]) {
    for (const [field] of files) {
      const value = values[field];
      // What JSON has made of a new file has no id.
      if (Array.isArray(value)) values[field] = value.filter((one) => Object(one).id);
      else delete values[field];
    }
  }
  const form = new FormData();
  form.append("record", JSON.stringify(body));
  for (const part of files) form.append(...part);
  const total = files.reduce((sum, [, { size }]) => sum + size, 0);
  return () =>
    reporting(total, onProgress, (onLoaded) => {
      const sending = sendingOf(context, total, onLoaded);
      const options = { query, body: form, signal, idempotent: idempotencyKey ?? false, ...sending };
      return context.transport.request(method, path, options);
    });
}
