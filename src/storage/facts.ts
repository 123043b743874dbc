import type { FileFacts } from "../config/types.ts";
import type { StoredObject } from "./types.ts";

/** What rules, triggers and webhooks see of a stored file. */
export function factsOf(object: StoredObject): FileFacts {
  const { key, size, contentType, customMetadata, uploadedBy, uploaded } = object;
  return { key, size, contentType, customMetadata, uploadedBy, uploaded: new Date(uploaded).toISOString() };
}
