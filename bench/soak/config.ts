export const TENANTS = 400;
export const ROOMS = 4;

/** Every area, and more instances than stay open. */
export const CONFIG = `{
  databases: {
    shared: { tables: {
      posts: {
        schema: { title: { type: "string" }, body: { type: "text" }, score: { type: "integer" }, author: { type: "string" } },
        fts: ["title", "body"],
        indexes: [{ fields: ["score"] }],
        access: { read: true, insert: (auth) => auth !== null, update: (auth, post) => auth?.id === post.author },
      },
      comments: { schema: { post: { type: "string", references: { table: "posts", onDelete: "cascade" } } } },
    } },
    tenants: { instance: true, tables: { lines: { schema: { n: { type: "integer" } } } } },
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
  rateLimits: {
    auth: { requests: 1000000, window: 60 }, signup: { requests: 1000000, window: 60 }, events: { requests: 1000000, window: 60 },
  },
}`;
