/** Timeout that only failing tests reach; generous for a busy machine. */
const DEADLINE_MS = 15_000;
const PAUSE_MS = 5;

/** Waits until `condition` holds. Rejects, naming `what`, if it does not in time. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`Gave up waiting until ${what}`);
    await Bun.sleep(PAUSE_MS);
  }
}
