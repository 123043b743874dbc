export const TENANTS = 400;
export const ROOMS = 4;
export const TEAMS = 8;

/** Returns a config with every area, and more instances than stay open. `webhookUrl`: receiver of task changes. */
export const configOf = (webhookUrl: string): string => `{
  databases: {
    shared: { tables: {
      posts: {
        schema: { title: { type: "string" }, body: { type: "text" }, score: { type: "integer" }, author: { type: "string" } },
        fts: ["title", "body"],
        indexes: [{ fields: ["score"] }],
        access: { read: true, insert: (auth) => auth !== null, update: (auth, post) => auth?.id === post.author },
      },
      comments: {
        schema: { post: { type: "string", references: { table: "posts", onDelete: "cascade" } } },
        access: { read: true },
      },
      tallies: { schema: { runs: { type: "integer" } } },
    } },
    tenants: { instance: true, tables: { lines: { schema: { n: { type: "integer" } } } } },
    teams: {
      instance: true,
      access: { open: (auth, team, { table }) => auth !== null && table("members").get(auth.id) !== null },
      tables: {
        members: { schema: { role: { type: "string" } }, access: { read: true } },
        tasks: {
          schema: {
            title: { type: "string", required: true },
            state: { type: "string" },
            points: { type: "integer" },
            owner: { type: "string", references: { table: "members", onDelete: "set null" } },
          },
          indexes: [{ fields: ["state"] }],
          access: {
            read: (auth, task, { table }) => auth !== null && table("members").get(auth.id) !== null && [["points", ">=", 0]],
            insert: (auth, task, { table }) => table("members").get(auth?.id ?? "")?.role === "editor",
            update: (auth, task, next, { table }) => table("members").get(auth?.id ?? "")?.role === "editor",
            delete: (auth, task, { table }) => table("members").get(auth?.id ?? "")?.role === "editor",
          },
        },
      },
    },
  },
  storage: { buckets: { files: { access: { read: true } } } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { near: { dimensions: 16 } },
  rooms: { game: { messageRate: 100, saveInterval: 5000, access: { join: true }, actions: {
    move: (room, player, payload) => {
      room.setShared((state) => ({ ...state, [player.userId]: payload }));
      return null;
    },
  } } },
  auth: { anonymous: true },
  jobs: { note: { run: async ({ data, app }) => { await app.kv("cache").set("job", data, { ttl: 60 }); } } },
  triggers: { count: { on: { table: "teams.tasks", events: ["insert"] }, run: async ({ app }) => {
    await app.db("shared").table("tallies").update("tasks", { runs: { $op: "increment", value: 1 } });
  } } },
  webhooks: { told: {
    url: ${JSON.stringify(webhookUrl)},
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwZ3M8xZ3oP1c=",
    on: { table: "teams.tasks", events: ["delete"] },
  } },
  routes: (api) => api
    .get("/best", async ({ app }) => app.db("shared").table("posts").sort("score", "desc").limit(3).list())
    .post("/note", async ({ app, auth }) => ({ id: await app.jobs.enqueue("note", { by: auth.id }) })),
  rateLimits: {
    auth: { requests: 1000000, window: 60 }, signup: { requests: 1000000, window: 60 }, events: { requests: 1000000, window: 60 },
  },
}`;
