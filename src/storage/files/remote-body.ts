import { AppError } from "../../kernel/errors.ts";

/** A body of up to so many bytes is read whole before it is answered: a store that fails in it is still told by the status. */
const WHOLE_MAX_BYTES = 256 * 1024;

export const storeFailed = (cause?: unknown): AppError =>
  new AppError(503, "The bucket's object store does not answer as it should", { cause });

/**
 * A store's bytes as the body of an answer; resolves when the first ones have come. Errors: 503, also where there are more or
 * fewer than `sizeBytes`. What is larger than WHOLE_MAX_BYTES comes as a stream, which fails then: its connection is cut, so
 * that nobody takes a part for the whole.
 */
export async function openRemoteBody(
  source: ReadableStream<Uint8Array<ArrayBuffer>>,
  sizeBytes: number,
): Promise<Blob | ReadableStream<Uint8Array>> {
  const next = createChunks(source, sizeBytes);
  const first: Uint8Array<ArrayBuffer>[] = [];
  let firstBytes = 0;
  while (firstBytes === 0 || sizeBytes <= WHOLE_MAX_BYTES) {
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

/** Chunks one by one, null after the last. Errors: 503 for a failing source, or one of another size. */
function createChunks(source: ReadableStream<Uint8Array<ArrayBuffer>>, sizeBytes: number) {
  const reader = source.getReader();
  let byteCount = 0;
  return {
    async read(): Promise<Uint8Array<ArrayBuffer> | null> {
      const { done, value } = await guarded(reader.read());
      byteCount += value?.byteLength ?? 0;
      if (byteCount > sizeBytes || (done && byteCount < sizeBytes)) {
        void reader.cancel().catch(() => {});
        throw storeFailed(new Error(`${sizeBytes} bytes are on record, ${byteCount} came`));
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
