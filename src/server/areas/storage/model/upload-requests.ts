import { type Static, Type } from "typebox";
import { badField } from "../../../../kernel/errors.ts";
import { optional } from "../../../../kernel/schema/types.ts";
import { Metadata } from "./content.ts";
import { Key } from "./keys.ts";
import { PART_NUMBER_MAX } from "../limits.ts";

const UploadId = Type.String({ minLength: 1 });
export const PartNumber = Type.Integer({ minimum: 1, maximum: PART_NUMBER_MAX });
const PartSize = Type.Integer({ description: "Bytes" });

export const NewUpload = Type.Object({
  key: Key,
  contentType: optional(Type.String()),
  metadata: optional(Metadata),
});

export const NamedUpload = Type.Object({ uploadId: UploadId, key: Key });

/** The query that names the part of an upload. */
export const NAMED_PART = { uploadId: UploadId, partNumber: PartNumber, key: Key };
export interface NamedPart {
  uploadId: string;
  partNumber: number;
  key: string;
}

const WantedPart = Type.Object({ partNumber: PartNumber, etag: Type.String(), size: optional(PartSize) });
/** A part as it is named for the file; its size too, as the list of parts has it. */
export type WantedPart = Static<typeof WantedPart>;

export const CompletedUpload = Type.Object({
  uploadId: UploadId,
  key: Key,
  parts: Type.Array(WantedPart, {
    minItems: 1,
    maxItems: PART_NUMBER_MAX,
    description: "In ascending order of `partNumber`",
  }),
});

/** Errors: 400. */
export function requireAscending(parts: readonly WantedPart[]): void {
  let last = 0;
  for (const [index, { partNumber }] of parts.entries()) {
    if (partNumber <= last) {
      throw badField(`parts.${index}`, "invalid_value", "parts must be in ascending order of partNumber");
    }
    last = partNumber;
  }
}
