import { deflateSync } from "node:zlib";

/** A black PNG; `claim` writes another size into its header than its pixels have. */
export function png(width: number, height: number, claim = { width, height }): Uint8Array<ArrayBuffer> {
  const chunk = (type: string, bytes: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), bytes]);
    const framed = Buffer.alloc(body.byteLength + 8);
    framed.writeUInt32BE(bytes.byteLength, 0);
    body.copy(framed, 4);
    framed.writeUInt32BE(Bun.hash.crc32(body), body.byteLength + 4);
    return framed;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(claim.width, 0);
  header.writeUInt32BE(claim.height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const pixels = deflateSync(Buffer.alloc(height * (1 + width * 3)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return new Uint8Array(
    Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]),
  );
}
