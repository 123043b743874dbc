import type { PartHeader } from "./form-parts.ts";

/** Takes the content of one part of a form, as fast as it can. */
export interface PartSink {
  /** The bytes are valid until the promise resolves. */
  take(bytes: Uint8Array): Promise<void>;
  end(): Promise<void>;
}

/** Before the first part. */
const NO_PART: PartSink = { async take() {}, async end() {} };

interface Arrived {
  /** Number of the part, from 1. */
  part: number;
  /** The beginning of a part, or bytes of it. */
  what: PartHeader | Uint8Array;
}

/**
 * Reads a form as it arrives: one part after the other, each chunk once the one before has been taken. Errors: 400 for a form that
 * is malformed, ends early or has more parts; those of `open` and of the sinks.
 */
export async function readForm(
  chunks: AsyncIterable<Uint8Array>,
  { boundary, partsMax }: { boundary: string; partsMax: number },
  open: (header: PartHeader) => Promise<PartSink>,
): Promise<void> {
  // Only some requests need it.
  const { createFormParts } = await import("./form-parts.ts");
  let arrived: Arrived[] = [];
  let count = 0;
  const parts = createFormParts(boundary, partsMax, (header) => {
    const part = ++count;
    arrived.push({ part, what: header });
    // A part has ended when the next one begins, or the form ends.
    return { take: (bytes) => void arrived.push({ part, what: bytes }), end() {} };
  });
  let current = 0;
  let sink: PartSink = NO_PART;
  const pass = async (): Promise<void> => {
    // The header of a part is reported before the last bytes of the part before it.
    const inOrder = arrived.toSorted((one, other) => one.part - other.part);
    arrived = [];
    for (const { part, what } of inOrder) {
      if (!(what instanceof Uint8Array)) {
        await sink.end();
        sink = await open(what);
        current = part;
      } else if (part === current) await sink.take(what);
      else throw new Error("bytes of a part came after the part had ended");
    }
  };
  for await (const chunk of chunks) {
    await parts.push(chunk);
    await pass();
  }
  await parts.end();
  await pass();
  await sink.end();
}
