/** The command that starts this program again: the executable; from source, Bun with the main file. */
export function ownCommand(): string[] {
  if (Bun.isStandaloneExecutable) return [process.execPath];
  return [process.execPath, Bun.fileURLToPath(new URL("../../main.ts", import.meta.url))];
}
