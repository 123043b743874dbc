import { JSON_HEADERS, MIB, SERVICE_HEADERS, type StallArea, send } from "./area.ts";
import type { OperationRequest } from "./measure.ts";

const EMAIL = "somebody@example.com";
const PASSWORD = "correct horse battery staple";
const USERS_MAX = 1_000;

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  auth: { anonymous: true },
  databases: { shared: { tables: { notes: { schema: { text: { type: "text" } }, access: { read: true, insert: true, upsert: "matching" } } } } },
  rateLimits: {
    auth: { requests: 1000000, window: 60 }, signin: { requests: 1000000, window: 60 }, signup: { requests: 1000000, window: 60 },
    events: { requests: 1000000, window: 60 },
  },
});
`;

const post = (path: string, body: unknown, headers: Record<string, string> = JSON_HEADERS): OperationRequest => ({
  method: "POST",
  path,
  headers,
  body: typeof body === "string" ? body : JSON.stringify(body),
});

const imported = {
  users: Array.from({ length: USERS_MAX }, (_, index) => ({ email: `user${index}@example.com`, password: PASSWORD })),
};

const event = {
  name: "view",
  properties: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`p${index}`, "x".repeat(60)])),
};

export const httpStalls: StallArea = {
  name: "HTTP, users, analytics",
  config: CONFIG,
  async prepare(server) {
    await send(server, "POST", "/api/auth/signup", { email: EMAIL, password: PASSWORD });
    const parameters = Array.from({ length: 1_000 }, (_, index) => `p${index}=1`).join("&");
    return [
      { name: "a URL with 1,000 parameters", requests: [{ path: `/api/db/shared/tables/notes?${parameters}` }] },
      { name: "10 MiB of nested arrays to sign-in", requests: [post("/api/auth/signin", "[".repeat(10 * MIB))] },
      {
        name: "sign-in with a wrong password, 32 clients",
        requests: [post("/api/auth/signin", { email: EMAIL, password: "wrong" })],
        clients: 32,
      },
      { name: "anonymous sign-in", requests: [post("/api/auth/signin/anonymous", {})] },
      {
        name: `an import of ${USERS_MAX} users`,
        requests: [post("/api/admin/auth/users/import", imported, SERVICE_HEADERS)],
        clients: 1,
      },
      {
        name: "a list of 1,000 users",
        requests: [{ path: "/api/auth/admin/users?limit=1000", headers: SERVICE_HEADERS }],
      },
      {
        name: "events, 100 a request with 50 properties",
        requests: [post("/api/analytics/track", { events: Array.from({ length: 100 }, () => event) })],
      },
      {
        name: "an overview over 90 days",
        requests: [{ path: "/api/analytics/query?range=90d", headers: SERVICE_HEADERS }],
      },
      { name: "the OpenAPI document", requests: [{ path: "/swagger/json" }] },
    ];
  },
};
