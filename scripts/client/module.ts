import { bundleClient } from "./bundle.ts";
import { MODULE, MODULE_ENTRY } from "./entries.ts";
import { packed } from "./packing.ts";

/** What `/client/index.js` and its chunks are served from. */
export async function buildModule(): Promise<Uint8Array> {
  const { files } = await bundleClient([MODULE_ENTRY], { root: MODULE, minify: true });
  return packed(files);
}
