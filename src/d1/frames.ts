/** The wire between server and query process: frames of a length (4 bytes, little-endian), a flag (1 byte) and a payload. */
const HEADER_BYTES = 5;

export interface Frame {
  flag: number;
  /** The payload as it has arrived. */
  chunks: Uint8Array<ArrayBuffer>[];
  sizeBytes: number;
}

export function encodeFrame(flag: number, payload: string): Uint8Array<ArrayBuffer> {
  const sizeBytes = Buffer.byteLength(payload);
  const frame = Buffer.allocUnsafeSlow(HEADER_BYTES + sizeBytes);
  writeHeader(frame, flag, sizeBytes);
  frame.write(payload, HEADER_BYTES, "utf8");
  return frame;
}

/** What goes before a payload of `sizeBytes`. */
export function encodeHeader(flag: number, sizeBytes: number): Uint8Array<ArrayBuffer> {
  const header = Buffer.allocUnsafeSlow(HEADER_BYTES);
  writeHeader(header, flag, sizeBytes);
  return header;
}

function writeHeader(frame: Buffer, flag: number, sizeBytes: number): void {
  frame.writeUInt32LE(sizeBytes, 0);
  frame.writeUInt8(flag, HEADER_BYTES - 1);
}

/** Frames from a stream's chunks, whatever their borders. No byte is copied: a big answer is never in one piece. */
export async function* readFrames(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
  /** Called with the size of each frame before its payload is taken in; until it resolves nothing more is read. */
  admit: (sizeBytes: number) => Promise<void> = async () => {},
): AsyncGenerator<Frame> {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerFilled = 0;
  let frame: Frame | null = null;
  let missing = 0;
  for await (const chunk of chunks) {
    let offset = 0;
    while (offset < chunk.byteLength) {
      if (frame === null) {
        const part = chunk.subarray(offset, offset + HEADER_BYTES - headerFilled);
        header.set(part, headerFilled);
        headerFilled += part.byteLength;
        offset += part.byteLength;
        if (headerFilled < HEADER_BYTES) break;
        missing = header.readUInt32LE(0);
        frame = { flag: header.readUInt8(HEADER_BYTES - 1), chunks: [], sizeBytes: missing };
        await admit(missing);
      }
      const part = chunk.subarray(offset, offset + missing);
      if (part.byteLength > 0) frame.chunks.push(part);
      missing -= part.byteLength;
      offset += part.byteLength;
      if (missing > 0) continue;
      yield frame;
      frame = null;
      headerFilled = 0;
    }
  }
}

export const textOf = (chunks: readonly Uint8Array[]): string => Buffer.concat(chunks).toString("utf8");
