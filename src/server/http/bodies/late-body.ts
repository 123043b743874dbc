/**
 * The size from which Bun, answering in a later turn of the event loop than the request's, writes a body in some twenty system
 * calls, one for each part of each header: 100 µs instead of 10.
 */
const FROM_BYTES = 15 * 1024;
/** The size from which the stream's copy of the body costs more than the system calls. */
const TO_BYTES = 1024 * 1024;

/**
 * Returns the body for an answer in a later turn than the request's, not for HEAD: `body`, or a stream of it that Bun sends in one
 * call. [HT91]
 */
export function lateBody(body: string): string | ReadableStream;
export function lateBody(body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | ReadableStream;
export function lateBody(body: string | Uint8Array<ArrayBuffer>): string | Uint8Array<ArrayBuffer> | ReadableStream {
  const sizeBytes = Buffer.byteLength(body);
  if (sizeBytes < FROM_BYTES || sizeBytes >= TO_BYTES) return body;
  return new ReadableStream(
    {
      type: "direct",
      pull(controller) {
        controller.write(body);
        controller.end();
      },
    },
    // The whole body is queued before anything is sent, so that the answer has a `Content-Length`.
    { highWaterMark: sizeBytes + 1 },
  );
}
