import { UI_FILES } from "../src/server/http/openapi/ui-files.ts";
import { FOR_BROWSERS, packed } from "./client/packing.ts";

/** Packs the files of `/swagger` for the executable. */
export async function packedSwaggerUi(): Promise<Uint8Array> {
  const files = Object.entries(UI_FILES).map(
    async ([name, { source }]) => [name, await Bun.file(Bun.resolveSync(source, import.meta.dir)).bytes()] as const,
  );
  return packed(new Map(await Promise.all(files)), FOR_BROWSERS);
}
