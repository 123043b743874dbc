import type { Clock } from "../../../kernel/clock.ts";
import { AppError, badRequest } from "../../../kernel/errors.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { UPLOAD_MIN_BYTES, UPLOAD_STALL_MS } from "../limits.ts";

/**
 * Yields the body as it arrives. The memory of a chunk is freed when the next one is read: copy what is needed longer.
 * Errors: 408 when fewer than UPLOAD_MIN_BYTES arrive within UPLOAD_STALL_MS, 400 when the body ends early or has another
 * length than declared.
 */
export async function* bodyChunks(request: Request, clock: Clock): AsyncGenerator<Uint8Array> {
  const declared = request.headers.get("content-length");
  let byteCount = 0;
  if (request.body !== null) {
    const reader = request.body.getReader();
    let isStalled = false;
    // One timer for the whole body: chunks arrive too often for a timer each.
    let countBefore = 0;
    // Only the client's time counts, not the disk's.
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
        // Freed at once: the garbage collector would let tens of megabytes of chunks accumulate.
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
