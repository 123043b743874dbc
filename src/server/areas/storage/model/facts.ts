import type { FileFacts } from "../../../config/types.ts";
import type { StoredObject } from "./types.ts";

/** What rules, triggers and webhooks see of a stored file. */
export function factsOf(object: StoredObject): FileFacts {
  const { key, size, contentType, customMetadata, uploadedBy, uploaded } = object;
  // A copy, because a rule may write into it, and the metadata is answered.
  const facts = { key, size, contentType, customMetadata: { ...customMetadata }, uploadedBy };
  return { ...facts, uploaded: new Date(uploaded).toISOString() };
}
