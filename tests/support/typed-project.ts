import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { temporaryDirectory, testPlatform } from "./index.ts";

/** The types of Bun that configs of the guide use. */
const ENVIRONMENT = `declare const process: { env: Record<string, string | undefined> };
interface ImportMeta { dir: string }
`;

/** A project that has nothing but the package. */
export interface TypedProject {
  readonly directory: string;
  /** Writes a file of the project. */
  write(path: string, content: string | Uint8Array): void;
}

/** Makes a project with the package that a server serves. From its sources, a server builds it first, which takes a while. */
export async function typedProject(): Promise<TypedProject> {
  const directory = temporaryDirectory();
  const write: TypedProject["write"] = (path, content) => {
    const file = join(directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  };
  const platform = await testPlatform({ config: "{}" });
  const packed = await platform.fetch("/client/platform.tgz", { decompress: false } as RequestInit);
  for (const { header, data } of await unpackTar(gunzipSync(new Uint8Array(await packed.arrayBuffer())))) {
    if (data !== undefined) write(header.name.replace(/^package\//, "node_modules/platform/"), data);
  }
  await platform.stop();
  write("package.json", JSON.stringify({ type: "module" }));
  write("environment.d.ts", ENVIRONMENT);
  return { directory, write };
}
