/** Returns the command that starts this program again: the executable; from source, Bun with the main file. */
export function ownCommand(): string[] {
  if (Bun.isStandaloneExecutable) return [process.execPath];
  // Bun must not read a .env in the working directory; the executable does not either.
  return [process.execPath, "--no-env-file", Bun.fileURLToPath(new URL("../../main.ts", import.meta.url))];
}
