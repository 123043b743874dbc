import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { HttpClient, TestPlatform } from "../../support/index.ts";
import { connectTo } from "../../support/tls/connect.ts";

export interface StoredFile {
  key: string;
  size: number;
  httpMetadata: { contentType: string };
  customMetadata: Record<string, string>;
  uploaded: string;
}

export const path = (bucket: string, key: string): string =>
  `/api/storage/${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`;

/** A form as a browser sends it. */
export async function upload(
  client: HttpClient,
  bucket: string,
  key: string,
  content: string | Uint8Array<ArrayBuffer>,
  options: { type?: string; metadata?: string } = {},
): Promise<{ status: number; body: StoredFile }> {
  const form = new FormData();
  form.append("key", key);
  if (options.metadata !== undefined) form.append("metadata", options.metadata);
  form.append("file", new Blob([content], { type: options.type ?? "application/x-test" }), "name.bin");
  const answer = await client.fetch(`/api/storage/${bucket}/upload`, { method: "POST", body: form });
  return { status: answer.status, body: (await answer.json()) as StoredFile };
}

/** A form written by hand: for what FormData would never send. */
export const rawForm = (
  client: HttpClient,
  bucket: string,
  body: string,
  contentType = "multipart/form-data; boundary=X",
) => client.fetch(`/api/storage/${bucket}/upload`, { method: "POST", headers: { "content-type": contentType }, body });

/** The files under the data directory that hold bytes of buckets, parts or uploads under way. */
export function bytesOnDisk(platform: TestPlatform, place = ""): string[] {
  return readdirSync(join(platform.dataDirectory, "storage", place), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

/** Until `probe` gives true; fails after `timeoutMs`, which is longer where much has to happen. */
export async function until(what: string, probe: () => boolean | Promise<boolean>, timeoutMs = 5_000): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs;
  while (!(await probe())) {
    if (Date.now() > giveUpAt) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await Bun.sleep(20);
  }
}

/** Sends these bytes over a socket of its own; resolves with what comes back until the end, or until `endAfterMs`. */
export function sendRaw(platform: TestPlatform, text: string, endAfterMs: number): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const socket = connectTo(platform.url, () => socket.write(text));
    socket.on("data", (bytes) => {
      received += bytes.toString();
    });
    socket.on("close", () => resolve(received));
    socket.on("error", () => {});
    setTimeout(() => socket.destroy(), endAfterMs);
  });
}

/** Sends the pieces with a pause after each, so that they arrive as chunks of their own; resolves with the whole answer. */
export function sendInPieces(
  platform: TestPlatform,
  pieces: readonly (string | Uint8Array)[],
  pauseMs: number,
): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const socket = connectTo(platform.url, async () => {
      socket.setNoDelay(true);
      for (const piece of pieces) {
        socket.write(piece);
        await Bun.sleep(pauseMs);
      }
    });
    socket.on("data", (bytes) => {
      received += bytes.toString();
    });
    socket.on("close", () => resolve(received));
    socket.on("error", () => {});
  });
}

export function randomBytes(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, Math.min(size, at + 65_536)));
  return bytes;
}
