import { close, fdatasync, open, unlink, write } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/** Floor of file storage: a bare server that sends a file, and one that writes and syncs its body. */
const [directory = "", file = ""] = process.argv.slice(2);
const openFile = promisify(open);
const closeFile = promisify(close);
const syncFile = promisify(fdatasync);
const unlinkFile = promisify(unlink);
const writeFile = promisify(write);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    if (request.method === "GET") return new Response(Bun.file(file));
    const bytes = await request.bytes();
    const path = join(directory, crypto.randomUUID());
    const descriptor = await openFile(path, "wx");
    for (let at = 0; at < bytes.byteLength; ) {
      const { bytesWritten } = await writeFile(descriptor, bytes, at, bytes.byteLength - at, null);
      at += bytesWritten;
    }
    await syncFile(descriptor);
    await closeFile(descriptor);
    // Like an overwrite: the disk must not fill up during the measurement.
    void unlinkFile(path);
    return new Response("{}", { status: 201 });
  },
});
process.stdout.write(`${server.url.origin}\n`);
