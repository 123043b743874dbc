import { AppError } from "../../../../kernel/errors.ts";

/** The answer where a record has no bytes, or not all of them: a disk has lost them, or somebody has removed them. */
export const bytesMissing = (): AppError => new AppError(503, "The bytes of this file are missing on the server");
