/** Files of one page of a folder. */
export const FILES_PAGE = 100;
/** Signed addresses of one request, by the server, and how long one is used: it is good for an hour. */
export const SIGNED_AT_ONCE_MAX = 100;
export const ADDRESS_STALE_MS = 30 * 60_000;
/** Keys of one request that deletes files, by the server. */
export const DELETED_AT_ONCE_MAX = 100;
/** Files that are sent at the same time, and files of a dropped folder. */
export const UPLOADS_AT_ONCE = 3;
export const DROPPED_FILES_MAX = 1_000;
/** Bytes: what is shown of a text, and the largest files that are loaded whole to be shown. */
export const TEXT_SHOWN_BYTES = 64 * 1024;
export const PDF_SHOWN_MAX_BYTES = 32 * 1024 * 1024;
export const PICTURE_SHOWN_MAX_BYTES = 4 * 1024 * 1024;
/** Pixels: the width of a picture in the grid of pictures. */
export const PICTURE_WIDTH = 160;
