/** One version of a file of the site. */
export interface SiteFile {
  /** The content type by the file's name, such as `text/css;charset=utf-8`. */
  readonly contentType: string;
  readonly size: number;
  /** The entity tag, which changes with the content. */
  readonly etag: string;
  readonly modifiedMs: number;
  blob(): Blob;
}

/** Returns the file at a path; null if there is none, or a directory. */
export function fileAt(files: SiteFiles, path: string): SiteFile | null {
  const found = files.find(path);
  return found === "directory" ? null : found;
}

/** The source of a site's files. */
export interface SiteFiles {
  /** Finds a path, which has no slash at its beginning or end, and no `..`; empty: the whole site. null: there is nothing. */
  find(path: string): SiteFile | "directory" | null;
}
