/** Scopes of the form `area:kind:name:action`; `*` matches any part. */
export interface Scopes {
  /** The texts of the config. */
  readonly texts: readonly string[];
  /** Whether at least one scope grants this right. */
  allows(area: string, kind: string, name: string, action: string): boolean;
}

/** The scopes of the root key and of keys declared without scopes. */
export const EVERY_SCOPE: Scopes = { texts: ["*:*:*:*"], allows: () => true };

/** Parses scopes. One without four parts grants nothing; the config check refuses it beforehand. */
export function createScopes(scopes: readonly string[]): Scopes {
  const wanted = scopes.map((scope) => scope.split(":")).filter((parts) => parts.length === 4);
  return {
    texts: scopes,
    allows(...right) {
      return wanted.some((parts) => parts.every((part, index) => part === "*" || part === right[index]));
    },
  };
}
