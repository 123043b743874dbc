import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badRequest, tooLarge } from "../../../../kernel/errors.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { UPLOAD_MIN_BYTES, UPLOAD_STALL_MS } from "../limits.ts";
import type { Arrival } from "../store/quotas.ts";
import type { IncomingFile } from "../model/types.ts";

/**
 * The body as it arrives. The memory of a chunk is freed when the next one is read: copy what is needed longer. Errors: 408 when
 * fewer than UPLOAD_MIN_BYTES arrive within UPLOAD_STALL_MS, 400 when the body ends early or has another length than declared.
 */
export async function* bodyChunks(request: Request, clock: Clock): AsyncGenerator<Uint8Array> {
  const declared = request.headers.get("content-length");
  let byteCount = 0;
  if (request.body !== null) {
    const reader = request.body.getReader();
    let isStalled = false;
    // One timer for the whole body: chunks arrive too often for a timer each.
    let countBefore = 0;
    // Only the time that the client takes counts, not that of the disk.
    let isAwaited = false;
    const watch = (): void => {
      if (!isAwaited || byteCount - countBefore >= UPLOAD_MIN_BYTES) {
        countBefore = byteCount;
        unwatch = clock.after(UPLOAD_STALL_MS, watch);
        return;
      }
      isStalled = true;
      void reader.cancel().catch(() => {});
    };
    let unwatch = clock.after(UPLOAD_STALL_MS, watch);
    try {
      for (;;) {
        isAwaited = true;
        const { done, value } = await read(reader, () => isStalled);
        isAwaited = false;
        if (done) break;
        byteCount += value.byteLength;
        yield value;
        // Freed at once: the garbage collector would let tens of megabytes of chunks collect.
        value.buffer.transfer(0);
      }
    } finally {
      unwatch();
      void reader.cancel().catch(() => {});
    }
    if (isStalled) throw stalled();
  }
  if (declared !== null && Number(declared) !== byteCount) throw brokeOff();
}

async function read(
  reader: Pick<ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>, "read">,
  isStalled: () => boolean,
) {
  try {
    return await reader.read();
  } catch {
    throw isStalled() ? stalled() : brokeOff();
  }
}

const stalled = () =>
  new AppError(408, `The body stalled: under ${UPLOAD_MIN_BYTES} bytes within ${UPLOAD_STALL_MS / SECOND_MS} s`);
const brokeOff = () => badRequest("The connection closed before the whole body arrived");

/** Writes chunks to a file and counts their bytes. */
export interface Receiver {
  take(chunk: Uint8Array): Promise<void>;
  readonly byteCount: number;
}

/** How large files of the bucket may be, and the bytes of this file that are stored already: the other parts of its upload. */
export interface SizeLimit {
  maxBytes: number;
  takenBytes?: number;
}

/** `arrival`: null for what is in memory already. Errors: 413 over the limit or the quota, 507 without room. */
export function createReceiver(incoming: IncomingFile, limit: SizeLimit, arrival: Arrival | null): Receiver {
  let byteCount = 0;
  return {
    async take(chunk) {
      byteCount += chunk.byteLength;
      if (byteCount > roomOf(limit)) throw tooBig(limit);
      arrival?.take(chunk.byteLength);
      await incoming.write(chunk);
    },
    get byteCount() {
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
