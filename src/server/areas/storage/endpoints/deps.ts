import type { Thumbs } from "../contents/thumbs.ts";
import type { ListCursors } from "../model/cursors.ts";
import type { StorageDeps, StorageService } from "../service/files.ts";
import type { Uploads } from "../service/multipart.ts";
import type { Signing } from "../service/signing.ts";

/** Dependencies of the endpoints' handlers. */
export interface EndpointDeps extends StorageDeps {
  service: StorageService;
  signing: Signing;
  uploads: Uploads;
  thumbs: Thumbs;
  cursors: ListCursors;
  /** Origin of signed URLs; null: the address that the request was sent to. */
  publicUrl: string | null;
}
