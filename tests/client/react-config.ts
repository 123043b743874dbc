import { defineConfig } from "platform";

/** Config of the tests of platform/react. */
export default defineConfig({
  auth: { anonymous: true },
  // Each test signs somebody in.
  rateLimits: { signin: { requests: 1_000, window: 60 }, signup: { requests: 1_000, window: 60 } },
  site: { directory: "./site" },
  databases: {
    shared: {
      tables: {
        films: {
          schema: { title: { type: "string", required: true } },
          fts: ["title"],
          access: { read: true, insert: (auth) => auth !== null, update: true, delete: true },
        },
        posters: {
          schema: {
            image: { type: "file", bucket: "files", required: true },
            back: { type: "file", bucket: "files" },
          },
          access: { read: true, insert: true, update: true },
        },
      },
    },
  },
  storage: { buckets: { files: { access: { read: true, write: true } } } },
  realtime: { access: { presence: (_auth, channel) => channel !== "presence:staff" } },
  rooms: {
    quiz: {
      reconnectTimeout: 500,
      access: { join: (_auth, id) => id !== "secret" },
      onCreate: (room) => room.setShared({ joins: 0, leaves: 0, count: 0 }),
      onJoin: (room) => room.setShared({ ...room.shared, joins: Number(room.shared["joins"]) + 1 }),
      onLeave: (room) => room.setShared({ ...room.shared, leaves: Number(room.shared["leaves"]) + 1 }),
      actions: {
        add(room, _player, payload: { by: number }) {
          room.setShared({ ...room.shared, count: Number(room.shared["count"]) + payload.by });
          return Number(room.shared["count"]);
        },
      },
    },
  },
});
