/** The command that starts this program again: the executable; from source, Bun with the main file. */
export function ownCommand(): string[] {
  if (Bun.isStandaloneExecutable) return [process.execPath];
  // As in the executable, a .env in the working directory is not Bun's to read.
  return [process.execPath, "--no-env-file", Bun.fileURLToPath(new URL("../../main.ts", import.meta.url))];
}
