import { AppError } from "../../../kernel/errors.ts";
import { REMOTE_WHOLE_MAX_BYTES } from "../limits.ts";

export const storeFailed = (cause?: unknown): AppError =>
  new AppError(503, "Unexpected response from the object store", { cause });

/**
 * Opens bytes of an object store as the body of an answer; resolves when the first ones have arrived. Errors: 503, also where there
 * are more or fewer than `sizeBytes`. A body of more than REMOTE_WHOLE_MAX_BYTES is a stream: a failure cuts its connection, so
 * that a client cannot take a part for the whole.
 */
export async function openRemoteBody(
  source: ReadableStream<Uint8Array<ArrayBuffer>>,
  sizeBytes: number,
): Promise<Blob | ReadableStream<Uint8Array>> {
  const next = createChunks(source, sizeBytes);
  const first: Uint8Array<ArrayBuffer>[] = [];
  let firstBytes = 0;
  while (firstBytes === 0 || sizeBytes <= REMOTE_WHOLE_MAX_BYTES) {
    const chunk = await next.read();
    if (chunk === null) return new Blob(first);
    first.push(chunk);
    firstBytes += chunk.byteLength;
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = first.shift() ?? (await next.read());
      if (chunk === null) controller.close();
      else controller.enqueue(chunk);
    },
    cancel: () => next.cancel(),
  });
}

/** Reads one chunk at a time, null after the last. Errors: 503 where the source fails or has another size. */
function createChunks(source: ReadableStream<Uint8Array<ArrayBuffer>>, sizeBytes: number) {
  const reader = source.getReader();
  let byteCount = 0;
  return {
    async read(): Promise<Uint8Array<ArrayBuffer> | null> {
      const { done, value } = await guarded(reader.read());
      byteCount += value?.byteLength ?? 0;
      if (byteCount > sizeBytes || (done && byteCount < sizeBytes)) {
        void reader.cancel().catch(() => {});
        throw storeFailed(new Error(`${sizeBytes} bytes are on record, ${byteCount} arrived`));
      }
      return done ? null : value;
    },
    cancel: () => reader.cancel(),
  };
}

export async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw storeFailed(cause);
  }
}
