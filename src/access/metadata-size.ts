import { requireJsonSize } from "../kernel/fields.ts";
import type { JsonObject } from "../kernel/json/json.ts";
import { METADATA_MAX_BYTES } from "./limits.ts";

/** The metadata of a user, by its name in the request. Errors: 413 above METADATA_MAX_BYTES of JSON each. */
export function requireMetadataSize(members: {
  metadata?: JsonObject | undefined;
  appMetadata?: JsonObject | undefined;
}): void {
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) requireJsonSize(name, value, METADATA_MAX_BYTES);
  }
}
