import { defineConfig } from "platform";

/** Config of the tests of the client: films, their reviews and authors, and clubs with instances. */
export default defineConfig({
  auth: { anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true } },
  storage: { buckets: { posters: {} } },
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true, max: 200 },
            genre: { type: "string", enum: ["Comedy", "Drama", "War"] },
            year: { type: "integer" },
            rating: { type: "number" },
            seen: { type: "boolean", required: true, default: false },
            released: { type: "datetime" },
            extra: { type: "json" },
            directorId: { type: "string", references: "people" },
          },
          fts: ["title"],
          access: { read: true, insert: (auth) => auth !== null, update: (auth) => auth !== null, delete: true },
        },
        people: {
          schema: { name: { type: "string", required: true, unique: true } },
          access: { read: true, insert: true },
        },
        reviews: {
          schema: {
            filmId: { type: "string", required: true, references: { table: "films", onDelete: "cascade" } },
            authorId: { references: "people" },
            text: { type: "text", default: "" },
          },
          access: { read: true, insert: true, update: true, delete: true },
        },
        evenings: {
          schema: {
            name: { type: "string" },
            filmIds: { type: "references", references: "films", max: 20 },
            guestIds: { type: "references", references: "people", required: true },
          },
          access: { read: true, insert: true, update: true, delete: true },
        },
        posters: {
          schema: {
            title: { type: "string" },
            image: { type: "file", bucket: "posters", required: true },
            back: { type: "file", bucket: "posters" },
            sketches: { type: "file", bucket: "posters", many: 3 },
          },
          access: { read: true, insert: true, update: true },
        },
        drafts: { access: { read: true, insert: true, update: true, delete: true } },
      },
    },
    clubs: {
      instance: true,
      access: { create: true, open: true },
      tables: {
        messages: { schema: { text: { type: "text", required: true } }, access: { read: true, insert: true } },
      },
    },
  },
});
