import { FILE_NAME_LENGTH_MAX } from "../limits.ts";

/** Control characters, and those that reverse what is shown of a name: `exe.gpj` for `jpg.exe`. */
const UNSHOWN = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Returns the name of a file as its record has it: without path and control characters. [TB720] */
export function fileNameOf(sent: string | null): string {
  const last = (sent ?? "").toWellFormed().split(/[\\/]/).at(-1) ?? "";
  const name = [...last.replace(UNSHOWN, "").trim()].slice(0, FILE_NAME_LENGTH_MAX).join("");
  return name === "" || name === "." || name === ".." ? "file" : name;
}
