/**
 * A body from this size on, whose answer comes in a later turn of the event loop than its request, is sent by Bun in some twenty calls
 * of the system, one for each part of each header: 100 µs instead of 10.
 */
const FROM_BYTES = 15 * 1024;
/** The stream copies the body. From here on that costs more than the calls. */
const TO_BYTES = 1024 * 1024;

/** What to answer with in a later turn than that of the request, not to HEAD: `body`, or a stream of it that Bun sends in one call. [HT91] */
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
    // All of it is there before anything is sent, so that the answer has a `Content-Length`.
    { highWaterMark: sizeBytes + 1 },
  );
}
