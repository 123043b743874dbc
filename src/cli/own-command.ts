/** How to start this program once more: the executable by itself; from source, Bun with the file that it runs. */
export function ownCommand(): string[] {
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, Bun.main];
}
