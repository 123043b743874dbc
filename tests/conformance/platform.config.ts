import { defineConfig, Refusal } from "platform";

const many = { requests: 1_000_000, window: 60 };

/** The server that the scenarios are written for. Its records at the beginning are in seed.json. */
export default defineConfig({
  // Short, so that every scenario with a pause of some seconds needs a refreshed token.
  auth: { session: { accessTokenTtl: 3 } },
  serviceKeys: { reader: { key: "conformance-reader-key-0123456789", scopes: ["db:shared:books:read"] } },
  rateLimits: { auth: many, signin: many, signup: many },
  storage: {
    buckets: {
      files: { access: { read: true, write: (auth) => auth !== null, delete: (auth) => auth !== null } },
      closed: {},
    },
  },
  rooms: {
    board: {
      access: { join: (auth, roomId) => auth !== null && !roomId.startsWith("closed") },
      actions: {
        write(room, player, { line }: { line: string }) {
          if (line === "") throw new Refusal("A line has a text");
          room.setShared((state) => ({
            lines: [...((state["lines"] as string[] | undefined) ?? []), line],
            by: player.userId,
          }));
          return { length: line.length };
        },
        say: (room, _player, { text }: { text: string }) => room.send("said", { text }),
      },
    },
  },
  databases: {
    shared: {
      tables: {
        people: { schema: { name: { type: "string", required: true, unique: true } }, access: { read: true } },
        books: {
          schema: {
            title: { type: "string", required: true, max: 100 },
            shelf: { type: "string", required: true },
            kind: { type: "string", enum: ["novel", "poems", "essay"] },
            year: { type: "integer", min: 0 },
            price: { type: "number" },
            authorId: { type: "string", references: "people" },
            code: { type: "string", unique: true },
            extra: { type: "json" },
          },
          fts: ["title"],
          indexes: [{ fields: ["shelf"] }],
          access: {
            read: true,
            insert: (auth) => auth !== null,
            update: (auth) => auth !== null,
            delete: (auth) => auth !== null,
            upsert: "matching",
          },
        },
        notes: {
          schema: { ownerId: { type: "string", required: true }, text: { type: "string", required: true } },
          access: {
            read: (auth) => auth !== null && [["ownerId", "==", auth.id]],
            insert: (auth, note) => note.ownerId === auth?.id,
            update: (auth, note) => note.ownerId === auth?.id,
            delete: (auth, note) => note.ownerId === auth?.id,
            upsert: "matching",
          },
        },
      },
    },
    clubs: {
      instance: true,
      access: { create: (auth) => auth !== null, open: true },
      tables: { members: { schema: { name: { type: "string" } }, access: { read: true, insert: true } } },
    },
  },
});
