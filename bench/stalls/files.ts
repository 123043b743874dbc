import { constants, deflateRawSync, deflateSync } from "node:zlib";
import { MIB, SERVICE_HEADERS, type StallArea, send } from "./area.ts";
import type { OperationRequest } from "./measure.ts";

const KEYS = 3_000;
const KEY_PADDING = "k".repeat(900);
/** Width and height: 31 megapixels, just below the limit of thumbnails. */
const PIXELS_A_SIDE = 5_600;
/** Size of the zeros that one block of a colour profile expands to. */
const PROFILE_BLOCK_MIB = 64;
const PROFILE_BLOCKS = 64;
const UPLOAD_CLIENTS = 32;
const METADATA_LENGTH = 15_000;
const THUMBS = Array.from({ length: 16 }, (_, index) => `${100 + index}x100`);

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  storage: { buckets: { files: { access: { read: true, write: true, delete: true }, thumbs: ${JSON.stringify(THUMBS)} } } },
});
`;

const CRC_TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function chunk(type: string, data: Uint8Array): Buffer {
  const typed = Buffer.concat([Buffer.from(type), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, check]);
}

/** Creates a PNG of one colour: small to send, expensive to decode. Greyscale of 8 bits, or four channels of 16 bits. */
function blankPng(side: number, { isDeep = false, chunks = [] as Buffer[] } = {}): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set(isDeep ? [16, 6] : [8, 0], 8);
  const pixels = deflateSync(Buffer.alloc((side * (isDeep ? 8 : 1) + 1) * side), { level: 1 });
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const [head, body, end] = [chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, head, ...chunks, body, end]);
}

/** Creates a colour profile of some megabytes that expands to gigabytes: one compressed block, many times. */
function profileBomb(): Buffer {
  const zeros = Buffer.alloc(PROFILE_BLOCK_MIB * MIB);
  const block = deflateRawSync(zeros, { level: 9, finishFlush: constants.Z_FULL_FLUSH });
  const blocks = Array.from({ length: PROFILE_BLOCKS }, () => block);
  const [start, end] = [Buffer.from([0x78, 0xda]), Buffer.from([3, 0, 0, 0, 0, 0])];
  return chunk("iCCP", Buffer.concat([Buffer.from("profile\0\0"), start, ...blocks, end]));
}

function upload(key: string, content: Uint8Array, type: string, metadata = "{}"): OperationRequest {
  const boundary = "boundary-of-the-measurement";
  const part = (text: string): Buffer => Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${text}`);
  const body = Buffer.concat([
    part(`name="key"\r\n\r\n${key}\r\n`),
    part(`name="metadata"\r\n\r\n${metadata}\r\n`),
    part(`name="file"; filename="f"\r\ncontent-type: ${type}\r\n\r\n`),
    content,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  const headers = { ...SERVICE_HEADERS, "content-type": `multipart/form-data; boundary=${boundary}` };
  return { method: "POST", path: "/api/storage/files/upload", headers, body };
}

async function put(server: { url: string }, request: OperationRequest): Promise<void> {
  const { method = "POST", path, headers = {}, body = null } = request;
  const response = await fetch(server.url + path, { method, headers, body });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

export const fileStalls: StallArea = {
  name: "files",
  config: CONFIG,
  async prepare(server) {
    for (let index = 0; index < KEYS; index++) {
      await put(server, upload(`${KEY_PADDING}${index}`, Buffer.from("x"), "text/plain"));
    }
    const pictures = Array.from({ length: 8 }, (_, index) => `picture${index}.png`);
    const png = blankPng(PIXELS_A_SIDE);
    for (const key of pictures) await put(server, upload(key, png, "image/png"));
    const hostile = {
      "deep.png": blankPng(PIXELS_A_SIDE, { isDeep: true }),
      "bomb.png": blankPng(8, { chunks: [profileBomb()] }),
    };
    for (const [key, content] of Object.entries(hostile)) await put(server, upload(key, content, "image/png"));
    const metadata = JSON.stringify({ note: "x".repeat(METADATA_LENGTH) });
    const deep = await send(server, "POST", "/api/storage/files/multipart/create", { key: "parts" });
    const { uploadId } = deep as { uploadId: string };
    const parts = Array.from({ length: 10_000 }, (_, index) => ({ partNumber: index + 1, etag: "x".repeat(32) }));
    return [
      {
        name: "list, 1,000 keys of 900 characters",
        requests: [{ path: "/api/storage/files?limit=1000", headers: SERVICE_HEADERS }],
      },
      {
        name: "thumbnails of 31 megapixels, each made for the first time",
        requests: THUMBS.flatMap((size) =>
          pictures.map((key) => ({ path: `/api/storage/files/${key}?thumb=${size}`, headers: SERVICE_HEADERS })),
        ),
      },
      {
        name: "thumbnails of 31 megapixels with 16 bits a channel, and of a profile that expands to 4 GiB",
        requests: THUMBS.flatMap((size) =>
          Object.keys(hostile).map((key) => ({
            path: `/api/storage/files/${key}?thumb=${size}`,
            headers: SERVICE_HEADERS,
          })),
        ),
      },
      {
        name: "uploads with 15 KB of metadata, 32 clients",
        clients: UPLOAD_CLIENTS,
        requests: Array.from({ length: UPLOAD_CLIENTS }, (_, index) =>
          upload(`described${index}`, Buffer.from("x"), "text/plain", metadata),
        ),
      },
      { name: "upload of 64 MiB", requests: [upload("large", Buffer.alloc(64 * MIB), "application/octet-stream")] },
      {
        name: "multipart complete with 10,000 parts",
        requests: [
          {
            method: "POST",
            path: "/api/storage/files/multipart/complete",
            headers: SERVICE_HEADERS,
            body: JSON.stringify({ uploadId, key: "parts", parts }),
          },
        ],
      },
    ];
  },
};
