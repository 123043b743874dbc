/** The actions of each area's scopes. Kind and name may be any text. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  storage: ["read", "write", "delete"],
  db: ["read", "insert", "update", "delete"],
  auth: ["read", "write"],
  kv: ["read", "write"],
  d1: [],
  vectorize: ["read", "write"],
  push: ["send", "read", "write"],
  realtime: ["broadcast", "read"],
  analytics: ["read", "write"],
  jobs: ["read", "write"],
  system: ["read"],
  audit: ["read"],
  functions: ["call"],
  rooms: ["read", "write"],
  backups: ["read", "write", "download"],
};

/** Describes the problem of a scope; null when it is well-formed. */
export function scopeProblem(scope: string): string | null {
  const parts = scope.split(":");
  const [area = "", kind, name, action = ""] = parts;
  if (parts.length !== 4 || kind === "" || name === "") {
    return `"${scope}" must have four parts, as in "storage:bucket:photos:read"`;
  }
  if (area === "*") return null;
  const actions = Object.hasOwn(ACTIONS, area) ? ACTIONS[area] : undefined;
  if (actions === undefined) return `"${area}" is not one of ${Object.keys(ACTIONS).join(", ")}`;
  if (action === "*" || actions.includes(action)) return null;
  return `"${action}" is not an action of ${area}: ${[...actions, "*"].join(", ")}`;
}
