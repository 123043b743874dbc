const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;
const STEP = 1024;

/** `2 files`, `1 file`. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** `312.8 MiB`; whole below one KiB. */
export function sizeText(bytes: number): string {
  const power = bytes < STEP ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / Math.log2(STEP)));
  return `${power === 0 ? bytes : (bytes / STEP ** power).toFixed(1)} ${UNITS[power]}`;
}
