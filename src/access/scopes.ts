/** `area:kind:name:action`, each part `*` for any. Decisions 3. */
export interface Scopes {
  /** Whether one of the scopes covers this right. */
  allows(area: string, kind: string, name: string, action: string): boolean;
}

/** The root key, and keys declared without scopes. */
export const EVERY_SCOPE: Scopes = { allows: () => true };

/** Parts beyond four belong to nobody: such a scope matches nothing, and the config's check has refused it before. */
export function createScopes(scopes: readonly string[]): Scopes {
  const wanted = scopes.map((scope) => scope.split(":")).filter((parts) => parts.length === 4);
  return {
    allows(...right) {
      return wanted.some((parts) => parts.every((part, index) => part === "*" || part === right[index]));
    },
  };
}
