import { join } from "node:path";
import { notFound } from "../../../kernel/errors.ts";
import { type Endpoint, endpoint, HIDDEN } from "../../http/endpoint.ts";
import { fileAnswer, packedAnswer } from "../../http/packed/answers.ts";
import { type Pack, readPack } from "../../http/packed/pack.ts";

export { readPack } from "../../http/packed/pack.ts";

export type ClientFilesArea = ReturnType<typeof createClientFilesArea>;

/** Serves the client of this server below `/client`. Files are read on the first request. */
export function createClientFilesArea() {
  const opened = new Map<ClientPart, Promise<unknown>>();
  /** Opens a part once; a failure is retried. */
  const once = <T>(part: ClientPart, open: () => Promise<T>): Promise<T> => {
    // The map's value under a part has the type that its one caller opens.
    const known = opened.get(part) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const opening = open();
    opened.set(part, opening);
    opening.catch(() => opened.delete(part));
    return opening;
  };
  return {
    endpoints: clientEndpoints({
      module: (): Promise<Pack> => once("module", async () => readPack(await pathOfPart("module"))),
      package: () => once("package", describedPackage),
    }),
  };
}

async function describedPackage() {
  const file = Bun.file(await pathOfPart("package"));
  const hash = new Bun.CryptoHasher("sha256").update(await file.arrayBuffer()).digest("base64url");
  return { file, etag: `"${hash}"` };
}

/** The parts of the client. `module`: the file that pages load (see pack.ts); `package`: the npm package. */
export type ClientPart = "module" | "package";

const BUILD = join(import.meta.dir, "../../../../scripts/client/build.ts");

/** Returns the path of a part: in the executable, or, for a server that runs from its sources, rebuilt when these have changed. */
export async function pathOfPart(part: ClientPart): Promise<string> {
  if (!Bun.isStandaloneExecutable) return built(part);
  const { default: path } =
    part === "module"
      ? await import("platform:client-module", { with: { type: "file" } })
      : await import("platform:client-package", { with: { type: "file" } });
  return path;
}

async function built(part: ClientPart): Promise<string> {
  const child = Bun.spawn([process.execPath, BUILD, part], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The client cannot be built:\n${errors}`);
  return output.trim();
}

const hidden = { ...HIDDEN, summary: "The client of this server", place: "none" } as const;

const PACKAGE_NAME = "platform.tgz";
const SCRIPT = { "content-type": "text/javascript; charset=utf-8" };

function clientEndpoints(parts: {
  module: () => Promise<Pack>;
  package: () => Promise<{ file: Blob; etag: string }>;
}): readonly Endpoint[] {
  return [
    endpoint("GET /client/platform.tgz", hidden, async ({ request }) => {
      const { file, etag } = await parts.package();
      const headers = {
        "content-type": "application/gzip",
        "content-disposition": `attachment; filename="${PACKAGE_NAME}"`,
        "cache-control": "no-cache",
        etag,
      };
      return fileAnswer(request, { headers, etag, content: file });
    }),
    endpoint("GET /client/:file", { ...hidden, path: { file: "index.js, or a chunk of it" } }, async (context) => {
      const { file: name } = context.params;
      const found = await packedAnswer(context.request, await parts.module(), name, SCRIPT);
      if (found === null) throw notFound(`The client has no file "${name}"; it has index.js and ${PACKAGE_NAME}`);
      return found;
    }),
  ];
}
