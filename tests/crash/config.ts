/** Time that a room's change may wait for its save. */
export const SAVE_INTERVAL_MS = 100;
export const INSTANCES = 4;

export const CONFIG = `{
  databases: {
    shared: { tables: {
      notes: { schema: { text: { type: "text" }, n: { type: "integer" } }, fts: ["text"], indexes: [{ fields: ["n"] }] },
      comments: { schema: { note: { type: "string", references: { table: "notes", onDelete: "cascade" } } } },
      tallies: { schema: { sum: { type: "integer" } } },
    } },
    tenants: { instance: true, tables: { lines: {} } },
  },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { near: { dimensions: 4 } },
  rooms: { game: { messageRate: 1000, saveInterval: ${SAVE_INTERVAL_MS}, access: { join: true }, actions: {
    // Two places that always say the same, so that half a state would show.
    add: (room) => {
      room.setShared((state) => ({ count: (state.count ?? 0) + 1 }));
      room.setServer({ count: room.shared.count });
      return { count: room.shared.count, at: Date.now() };
    },
    both: (room) => [room.shared.count ?? 0, room.server.count ?? 0],
  } } },
  rateLimits: { auth: { requests: 1000000, window: 60 }, events: { requests: 1000000, window: 60 } },
}`;
