/** Number of concurrent openings, below the limit of unauthenticated connections per address. */
const OPENED_AT_ONCE = 40;

/** Opens `count` sockets in groups. A socket is open when its promise resolves. */
export async function openInGroups(count: number, open: (index: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += OPENED_AT_ONCE) {
    const group = Math.min(OPENED_AT_ONCE, count - from);
    await Promise.all(Array.from({ length: group }, (_, at) => open(from + at)));
  }
}

/** Returns the first messages of a realtime client. */
export const hello = (token: string, ...channels: string[]): string[] => [
  JSON.stringify({ type: "auth", token }),
  ...channels.map((channel) => JSON.stringify({ type: "subscribe", channel })),
];
