/** Below the number of connections of one address that may be unauthenticated at once. */
const OPENED_AT_ONCE = 40;

/** Opens so many sockets, group by group; each is opened when its promise resolves. */
export async function openInGroups(count: number, open: (index: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += OPENED_AT_ONCE) {
    const group = Math.min(OPENED_AT_ONCE, count - from);
    await Promise.all(Array.from({ length: group }, (_, at) => open(from + at)));
  }
}

/** What a client of realtime sends first. */
export const hello = (token: string, ...channels: string[]): string[] => [
  JSON.stringify({ type: "auth", token }),
  ...channels.map((channel) => JSON.stringify({ type: "subscribe", channel })),
];
