import type { ClientContext } from "../context.ts";
import { jsonOf } from "../transport/send.ts";
import type { Transport } from "../transport/types.ts";
import type { TableAddress } from "./description.ts";
import type { TableWrite, WriteOperation, WriteRequest } from "./local-writes.ts";

interface Write {
  address: TableAddress;
  operations: readonly WriteOperation[];
  request: Omit<WriteRequest, "idempotencyKey">;
}

/** Sends a write, and gives its answer. `signal` ends it, and the waits between its tries; default: nothing does. */
export const sendWrite = (
  { request }: Pick<Transport, "request">,
  { request: { method, path, query, body, idempotencyKey } }: TableWrite,
  signal?: AbortSignal,
): Promise<unknown> => request(method, path, { query, body, signal, idempotent: idempotencyKey ?? false });

/** Announces a write to what shows it at once, sends it, and says how it ended. */
export async function performWrite<Answer>(
  context: ClientContext,
  { address, operations, request }: Write,
): Promise<Answer> {
  const keyed = { ...request, idempotencyKey: request.method === "DELETE" ? null : context.runtime.uuid() };
  // A copy of its JSON, as what waits and what is shown outlive the call, and a database of a browser takes no reactive objects.
  const write: TableWrite = JSON.parse(jsonOf({ ...address, operations, request: keyed }));
  const begun = context.writes.begin(write);
  try {
    // The answers of the server are not checked again.
    const answer = (await context.deliver(write)) as Answer;
    begun.confirm(answer);
    return answer;
  } catch (error) {
    begun.undo(error);
    throw error;
  }
}
