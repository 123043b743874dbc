import { type Pack, readPack } from "../../http/packed/pack.ts";
import { clientEndpoints } from "./endpoints.ts";

import { type ClientPart, pathOfPart } from "./sources.ts";

export { readPack } from "../../http/packed/pack.ts";
export { pathOfPart } from "./sources.ts";

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
