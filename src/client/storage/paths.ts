export const bucketPath = (bucket: string): string => `/api/storage/${encodeURIComponent(bucket)}`;

/** Returns the path of a file. Slashes of the key are not escaped, which keeps addresses readable. */
export const filePath = (bucket: string, key: string): string =>
  `${bucket}/${key.split("/").map(encodeURIComponent).join("/")}`;
