/** One version of a file of the site. */
export interface SiteFile {
  /** Of its name, such as `text/css;charset=utf-8`. */
  readonly contentType: string;
  readonly size: number;
  /** Changes with the content. */
  readonly etag: string;
  readonly modifiedMs: number;
  blob(): Blob;
}

/** null also for a directory. */
export function fileAt(files: SiteFiles, path: string): SiteFile | null {
  const found = files.find(path);
  return found === "directory" ? null : found;
}

/** Where the files of a site come from. */
export interface SiteFiles {
  /** `path` has no slash at its beginning or end, and no `..`; empty: the whole site. null: there is nothing. */
  find(path: string): SiteFile | "directory" | null;
}
