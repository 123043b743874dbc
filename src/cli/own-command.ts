/** The command that starts this program again: the executable; from source, Bun with its main file. */
export function ownCommand(): string[] {
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, Bun.main];
}
