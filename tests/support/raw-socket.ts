import { connect } from "node:net";

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Frame {
  opcode: number;
  payload: Uint8Array;
  isFinal?: boolean;
  /** Reserved bits, 0 to 7. */
  reserved?: number;
  isMasked?: boolean;
  /** Length that the frame claims, if it is to be false. */
  claimedLength?: number;
}

/** Encodes one frame of RFC 6455; masked by default, as a client's must be. */
export function encodeFrame(frame: Frame): Buffer {
  const { opcode, payload, isFinal = true, reserved = 0, isMasked = true } = frame;
  const length = frame.claimedLength ?? payload.byteLength;
  const first = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  const mask = isMasked ? Buffer.from([0x12, 0x34, 0x56, 0x78]) : Buffer.alloc(0);
  const masked = isMasked ? payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)) : payload;
  return Buffer.concat([Buffer.from([first]), encodeLength(length, isMasked), mask, masked]);
}

function encodeLength(length: number, isMasked: boolean): Buffer {
  const bit = isMasked ? 0x80 : 0;
  if (length < 126) return Buffer.from([bit | length]);
  const bytes = Buffer.alloc(length < 65_536 ? 3 : 9);
  bytes[0] = bit | (length < 65_536 ? 126 : 127);
  if (length < 65_536) bytes.writeUInt16BE(length, 1);
  else bytes.writeBigUInt64BE(BigInt(length), 1);
  return bytes;
}

export interface RawSocket {
  write(bytes: Uint8Array): void;
  /** Complete text messages received. */
  readonly texts: readonly string[];
  /** Waits until a text contains `part`. Returns false if the connection ends first, or after `timeoutMs`. */
  until(part: string, timeoutMs: number): Promise<boolean>;
  readonly isClosed: boolean;
  /** Close code of the server; null before its close frame. */
  readonly closeCode: number | null;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Opens a hand-written WebSocket, for frames that no client library would send. Rejects when the upgrade is refused. */
export function openRawSocket(url: string): Promise<RawSocket> {
  const { hostname, port, pathname, search } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<RawSocket>();
  const texts: string[] = [];
  let received: Buffer = Buffer.alloc(0);
  let isOpen = false;
  let isClosed = false;
  let closeCode: number | null = null;
  const socket = connect(Number(port), hostname, () => {
    const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13";
    const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n${upgrade}\r\n${key}\r\n\r\n`);
  });
  const raw: RawSocket = {
    write: (bytes) => void (isClosed || socket.write(bytes)),
    texts,
    get isClosed() {
      return isClosed;
    },
    async until(part, timeoutMs) {
      const giveUpAt = Date.now() + timeoutMs;
      while (!texts.some((text) => text.includes(part))) {
        if (isClosed || Date.now() > giveUpAt) return false;
        await Bun.sleep(1);
      }
      return true;
    },
    get closeCode() {
      return closeCode;
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => socket.destroy(),
  };
  const takeFrames = (): void => {
    for (;;) {
      const frame = decodeFrame(received);
      if (frame === null) return;
      received = received.subarray(frame.end);
      if (frame.opcode === OPCODE.close && frame.payload.byteLength >= 2) closeCode = frame.payload.readUInt16BE(0);
      if (frame.opcode === OPCODE.text) texts.push(frame.payload.toString("utf8"));
    }
  };
  socket.on("data", (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
    const end = received.indexOf("\r\n\r\n");
    if (!isOpen && end >= 0) {
      const head = received.subarray(0, end).toString("latin1");
      received = received.subarray(end + 4);
      isOpen = head.startsWith("HTTP/1.1 101");
      if (isOpen) resolve(raw);
      else reject(new Error(head));
    }
    if (isOpen) takeFrames();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
    reject(new Error("closed before the upgrade"));
  });
  return promise;
}

/** Decodes a server's frame: unmasked, and whole messages only; null while it is incomplete. */
function decodeFrame(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | null {
  const [first, second] = bytes;
  if (first === undefined || second === undefined) return null;
  const short = second & 0x7f;
  const headBytes = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.byteLength < headBytes) return null;
  const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const end = headBytes + length;
  return bytes.byteLength < end ? null : { opcode: first & 0x0f, payload: bytes.subarray(headBytes, end), end };
}
