/** The wire between server and query process: frames of a length (4 bytes, little-endian), a flag (1 byte) and a payload. */
const HEADER_BYTES = 5;

export interface Frame {
  flag: number;
  payload: Uint8Array<ArrayBuffer>;
}

export function encodeFrame(flag: number, payload: Uint8Array | string): Uint8Array<ArrayBuffer> {
  const sizeBytes = typeof payload === "string" ? Buffer.byteLength(payload) : payload.byteLength;
  const frame = Buffer.allocUnsafeSlow(HEADER_BYTES + sizeBytes);
  frame.writeUInt32LE(sizeBytes, 0);
  frame.writeUInt8(flag, HEADER_BYTES - 1);
  if (typeof payload === "string") frame.write(payload, HEADER_BYTES, "utf8");
  else frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Frames from a stream's chunks, whatever their borders. Each byte is copied once, so that a big answer costs little a turn. */
export async function* readFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerFilled = 0;
  let payload: Uint8Array<ArrayBuffer> | null = null;
  let payloadFilled = 0;
  for await (const chunk of chunks) {
    let offset = 0;
    while (offset < chunk.byteLength) {
      if (payload === null) {
        const part = chunk.subarray(offset, offset + HEADER_BYTES - headerFilled);
        header.set(part, headerFilled);
        headerFilled += part.byteLength;
        offset += part.byteLength;
        if (headerFilled < HEADER_BYTES) break;
        payload = new Uint8Array(header.readUInt32LE(0));
        payloadFilled = 0;
      }
      const part = chunk.subarray(offset, offset + payload.byteLength - payloadFilled);
      payload.set(part, payloadFilled);
      payloadFilled += part.byteLength;
      offset += part.byteLength;
      if (payloadFilled < payload.byteLength) continue;
      yield { flag: header.readUInt8(HEADER_BYTES - 1), payload };
      payload = null;
      headerFilled = 0;
    }
  }
}
