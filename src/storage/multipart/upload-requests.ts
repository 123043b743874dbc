import { badField } from "../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { refuseUnknownMembers } from "../../kernel/members.ts";
import { parseKey } from "../keys.ts";
import { PART_NUMBER_MAX } from "../limits.ts";

export interface NamedUpload {
  uploadId: string;
  key: string;
}

/** The members that say which upload is meant. Errors: 400. */
export function parseNamed(fields: JsonObject): NamedUpload {
  const { uploadId } = fields;
  const key = parseKey(fields["key"]);
  if (uploadId === undefined || uploadId === null || uploadId === "") {
    throw badField("uploadId", "required", "uploadId is required");
  }
  if (typeof uploadId !== "string") throw badField("uploadId", "invalid_type", "uploadId must be a string");
  return { uploadId, key };
}

export interface NamedPart {
  partNumber: number;
  etag: string;
  /** As the list of parts has it; null: not named. */
  size: number | null;
}

/** The parts that a complete call names, in ascending order. Errors: 400. */
export function parseParts(named: unknown): NamedPart[] {
  if (named === undefined || named === null) throw badField("parts", "required", "parts is required");
  if (!Array.isArray(named)) throw badField("parts", "invalid_type", "parts must be an array of { partNumber, etag }");
  if (named.length === 0) throw badField("parts", "too_short", "parts must name at least one part");
  if (named.length > PART_NUMBER_MAX) {
    throw badField("parts", "too_long", `parts must name at most ${PART_NUMBER_MAX} parts`);
  }
  let last = 0;
  return named.map((one: unknown, index) => {
    const field = `parts.${index}`;
    const members = isJsonObject(one) ? one : {};
    refuseUnknownMembers(members, ["partNumber", "etag", "size"], "a part", `${field}.`);
    const { partNumber, etag, size = null } = members;
    if (typeof partNumber !== "number" || typeof etag !== "string") {
      throw badField(field, "invalid_type", `${field} must be { partNumber, etag }`);
    }
    if (size !== null && typeof size !== "number") {
      throw badField(`${field}.size`, "invalid_type", `${field}.size must be a number of bytes`);
    }
    if (partNumber <= last) throw badField(field, "invalid_value", "parts must be in ascending order of partNumber");
    last = partNumber;
    return { partNumber, etag, size };
  });
}

/** Part numbers are whole and start at 1. Errors: 400. */
export function parsePartNumber(text: string): number {
  const partNumber = Number(text);
  if (/^\d{1,9}$/.test(text) && partNumber >= 1 && partNumber <= PART_NUMBER_MAX) return partNumber;
  throw badField("partNumber", "invalid_value", `partNumber must be a whole number from 1 to ${PART_NUMBER_MAX}`);
}
