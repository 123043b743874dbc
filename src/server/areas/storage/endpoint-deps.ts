import type { ListCursors } from "./cursors.ts";
import type { Uploads } from "./multipart/multipart-uploads.ts";
import type { StorageDeps, StorageService } from "./service.ts";
import type { Signing } from "./signing/signing.ts";
import type { Thumbs } from "./thumbs/thumbs.ts";

/** What the handlers of the endpoints use. */
export interface EndpointDeps extends StorageDeps {
  service: StorageService;
  signing: Signing;
  uploads: Uploads;
  thumbs: Thumbs;
  cursors: ListCursors;
  /** The beginning of signed URLs; null: the address that the request was sent to. */
  publicUrl: string | null;
}
