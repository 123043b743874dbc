/** `area:kind:name:action`, each part `*` for any. Decisions 3. */
export interface Scopes {
  /** Whether one of the scopes covers this right. */
  allows(area: string, kind: string, name: string, action: string): boolean;
}

/** The root key, and keys declared without scopes. */
export const EVERY_SCOPE: Scopes = { allows: () => true };

/** The action part of each area's scopes; kind and name are free. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  storage: ["read", "write", "delete"],
  db: ["read", "insert", "update", "delete"],
  auth: ["read", "write"],
  kv: ["read", "write"],
  d1: [],
  vectorize: ["read", "write"],
  push: ["send", "read", "write"],
  realtime: ["broadcast"],
  analytics: ["read", "write"],
  system: ["read"],
};

/** What is wrong with a scope, in words; null when it is well-formed. */
export function scopeProblem(scope: string): string | null {
  const parts = scope.split(":");
  const [area = "", kind, name, action = ""] = parts;
  if (parts.length !== 4 || kind === "" || name === "") {
    return `"${scope}" must have four parts, as in "storage:bucket:photos:read"`;
  }
  if (area === "*") return null;
  const actions = ACTIONS[area];
  if (actions === undefined) return `"${area}" is not one of ${Object.keys(ACTIONS).join(", ")}`;
  if (action === "*" || actions.includes(action)) return null;
  return `"${action}" is not an action of ${area}: ${[...actions, "*"].join(", ")}`;
}

/** Parts beyond four belong to nobody: such a scope matches nothing, and the config's check has refused it before. */
export function createScopes(scopes: readonly string[]): Scopes {
  const wanted = scopes.map((scope) => scope.split(":")).filter((parts) => parts.length === 4);
  return {
    allows(...right) {
      return wanted.some((parts) => parts.every((part, index) => part === "*" || part === right[index]));
    },
  };
}
