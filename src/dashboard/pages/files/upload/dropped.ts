import { numberText } from "../../../parts/format.ts";
import { DROPPED_FILES_MAX } from "../limits.ts";
import type { ChosenFile } from "./uploads.ts";

/**
 * The files that are dropped, those in folders with their paths. `prefix` begins their keys. Errors: more than DROPPED_FILES_MAX,
 * as nobody would know which of them are left out.
 */
export async function droppedFiles(transfer: DataTransfer, prefix: string): Promise<ChosenFile[]> {
  // The list of items is empty as soon as this event has been handled.
  const items = [...transfer.items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const entries = items.flatMap(({ entry }) => entry ?? []);
  // What comes from another page is not in the file system.
  const found: ChosenFile[] = chosenFiles(
    items.flatMap(({ entry, file }) => (entry === null && file !== null ? file : [])),
    prefix,
  );
  for (const entry of entries) await collect(entry, prefix, found);
  return found;
}

async function collect(entry: FileSystemEntry, prefix: string, found: ChosenFile[]): Promise<void> {
  if (entry.isFile) {
    if (found.length >= DROPPED_FILES_MAX) {
      throw new Error(`More than ${numberText(DROPPED_FILES_MAX)} files are too many at once: drop a part of them`);
    }
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ key: prefix + file.name, file });
    return;
  }
  // A directory gives its entries a hundred at a time.
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const next = () => new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
  for (let entries = await next(); entries.length > 0; entries = await next()) {
    for (const one of entries) await collect(one, `${prefix}${entry.name}/`, found);
  }
}

export const chosenFiles = (files: readonly File[], prefix: string): ChosenFile[] =>
  files.map((file) => ({ key: prefix + file.name, file }));
