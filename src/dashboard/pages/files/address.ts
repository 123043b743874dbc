/** What the page shows; all of it is in its address. */
export interface FilesState {
  bucket: string;
  /** The open folder, with its slash; absent: the top. */
  prefix: string;
  /** The beginning of names in the folder. */
  q: string;
  layout: Layout;
  /** The key of the open file. */
  file: string;
  /** Unfinished uploads are open. */
  uploads: boolean;
}

export type Layout = "list" | "pictures";

/** The last segment, without the slash of a folder. */
export const nameOf = (key: string): string => key.replace(/\/$/, "").split("/").at(-1) ?? key;

/** The folders that a key or a folder is in, from the top: each with its name. */
export function foldersOf(prefix: string): readonly { name: string; prefix: string }[] {
  const names = prefix.split("/").slice(0, -1);
  return names.map((name, index) => ({ name, prefix: `${names.slice(0, index + 1).join("/")}/` }));
}

export const hiddenName = (bucket: string, key: string): string => `files/${bucket}/${key}`;
