export const bucketPath = (bucket: string): string => `/api/storage/${encodeURIComponent(bucket)}`;

/** The slashes of a key stay, so that addresses can be read. */
export const filePath = (bucket: string, key: string): string =>
  `${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`;
