/** What a page has begun with the rights of a key: it is finished with them, and nobody else sees it. */
export interface Begun {
  /** Before the session is ended by a sign-out. */
  finish(): Promise<unknown>;
  /** When the session has ended: whatever is left belongs to nobody. */
  forget(): void;
}

const begun = new Set<Begun>();

/** Called as soon as something is kept beside the cache of queries; the same one counts once. */
export const endsWithSession = (one: Begun): void => void begun.add(one);

export const finishBegun = (): Promise<unknown> => Promise.all([...begun].map((one) => one.finish()));

export function forgetBegun(): void {
  for (const one of begun) one.forget();
}
