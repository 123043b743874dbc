import { defineConfig } from "platform";

/** Config of the tests of platform/admin. */
export default defineConfig({
  auth: { anonymous: true },
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "string" } } } } },
    clubs: { instance: true, tables: { messages: { schema: { text: { type: "string" } } } } },
  },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { texts: { dimensions: 2, metric: "cosine" } },
  rooms: { game: { access: { join: true }, onJoin: (room) => room.setShared({ begun: true }) } },
  jobs: {
    work: {
      retries: 0,
      run: () => {
        throw new Error("not today");
      },
    },
  },
  routes: (api) =>
    api
      .get("/key", ({ serviceKey }) => ({ name: serviceKey?.name ?? null }))
      .post("/work", async ({ app }) => ({ id: await app.jobs.enqueue("work", { n: 1 }) })),
  serviceKeys: { limited: { key: "limited-key-0123456789abcdef", scopes: ["kv:namespace:cache:read"] } },
});
