import { acceptsEncoding } from "../../http/packed/encoding.ts";
import { fileAt, type SiteFile, type SiteFiles } from "./files.ts";

/** A file as it is sent: compressed or uncompressed. */
export interface Representation {
  file: SiteFile;
  encoding: "br" | "gzip" | null;
}

const SIBLINGS = [
  { encoding: "br", ending: ".br" },
  { encoding: "gzip", ending: ".gz" },
] as const;

/** Finds the compressed sibling that the client accepts. `varies`: whether other clients receive another representation. */
export function representationOf(
  files: SiteFiles,
  path: string,
  file: SiteFile,
  accepted: string | null,
): { chosen: Representation; varies: boolean } {
  let chosen: Representation = { file, encoding: null };
  let varies = false;
  for (const { encoding, ending } of SIBLINGS) {
    const sibling = fileAt(files, path + ending);
    if (sibling === null) continue;
    varies = true;
    if (chosen.encoding === null && acceptsEncoding(accepted, encoding)) chosen = { file: sibling, encoding };
  }
  return { chosen, varies };
}
