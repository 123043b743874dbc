/** Source of random values. It is an argument, as time is. */
export interface Ids {
  /** Returns a UUID v7: later ids sort later. */
  uuid(): string;
  /** Returns unpredictable bytes as base64url, for secrets and tokens. */
  secret(byteCount: number): string;
}

export const systemIds: Ids = {
  uuid: () => Bun.randomUUIDv7(),
  secret: (byteCount) => Buffer.from(crypto.getRandomValues(new Uint8Array(byteCount))).toString("base64url"),
};
