/** Standard output is for answers; this returns when the text has left, so that the process may end. */
export async function printAnswer(text: string): Promise<void> {
  await Bun.write(Bun.stdout, `${text}\n`);
}

/** Standard error is for everything else that a person reads. */
export async function printNote(text: string): Promise<void> {
  await Bun.write(Bun.stderr, `${text}\n`);
}
