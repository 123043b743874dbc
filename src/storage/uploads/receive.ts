import type { Clock } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";
import { AppError, badRequest, tooLarge } from "../../kernel/errors.ts";
import { UPLOAD_MIN_BYTES, UPLOAD_STALL_MS } from "../limits.ts";
import type { IncomingFile } from "../types.ts";

/**
 * The body as it arrives; no more of it is in memory than has not been taken yet. A chunk is gone when the next one is
 * asked for: who needs its bytes longer copies them. Errors: 408 when less than UPLOAD_MIN_BYTES comes within
 * UPLOAD_STALL_MS, 400 when it breaks off or is not as long as it said.
 */
export async function* bodyChunks(request: Request, clock: Clock): AsyncGenerator<Uint8Array> {
  const declared = request.headers.get("content-length");
  let byteCount = 0;
  if (request.body !== null) {
    const reader = request.body.getReader();
    let isStalled = false;
    // One timer for the whole body: chunks come too often for one each.
    let countBefore = 0;
    // Only the client's time counts: the disk may take what it takes.
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
        // Given back at once: the collector would let tens of megabytes of taken chunks gather.
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
const brokeOff = () => badRequest("The body broke off");

/** Takes chunks into a file, and counts them. */
export interface Receiver {
  take(chunk: Uint8Array): Promise<void>;
  readonly byteCount: number;
}

/** How large the bucket's files may be, and how much of this one is there already: the other parts of its upload. */
export interface SizeLimit {
  maxBytes: number;
  takenBytes?: number;
}

/** Errors: 413 over the limit, 507 without room. */
export function createReceiver(incoming: IncomingFile, limit: SizeLimit): Receiver {
  let byteCount = 0;
  return {
    async take(chunk) {
      byteCount += chunk.byteLength;
      if (byteCount > roomOf(limit)) throw tooBig(limit);
      await incoming.write(chunk);
    },
    get byteCount() {
      return byteCount;
    },
  };
}

/** Refuses by the declared length, before anything is read; `overheadBytes` is what may come beside the file. */
export function requireDeclaredLength(request: Request, limit: SizeLimit, overheadBytes = 0): void {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > roomOf(limit) + overheadBytes) throw tooBig(limit);
}

const roomOf = ({ maxBytes, takenBytes = 0 }: SizeLimit): number => maxBytes - takenBytes;

export const tooBig = ({ maxBytes }: SizeLimit) => tooLarge(`The file must be at most ${maxBytes} bytes`);
