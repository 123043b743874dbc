/** Only a failing test waits so long; a busy machine may need some of it. */
const DEADLINE_MS = 15_000;
const PAUSE_MS = 5;

/** Waits until `condition` holds. Rejects, naming `what`, when it does not in time. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`Gave up waiting until ${what}`);
    await Bun.sleep(PAUSE_MS);
  }
}
