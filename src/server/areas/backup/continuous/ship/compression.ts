import { constants } from "node:zlib";
import { ZSTD_LEVEL } from "../limits.ts";

/** Options of every compression. */
export const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL } };
