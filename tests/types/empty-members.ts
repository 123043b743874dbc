import { defineConfig, type PlatformConfig, type TypesOf } from "platform";

// The types of a config with empty and partial members: rules, hooks, code and the client keep those of all others. `tsc` is the test.

const table = {
  schema: { title: { type: "string", required: true }, ownerId: { type: "string" } },
  access: { read: true },
} as const;

export const emptyMembers = defineConfig({
  auth: {},
  storage: { buckets: {} },
  kv: {},
  d1: {},
  vectorize: {},
  rooms: {},
  jobs: {},
  cron: {},
  triggers: {},
  databases: {
    none: { tables: {} },
    tenants: { instance: true, tables: {} },
    views: { tables: {}, views: {} },
    shared: {
      tables: {
        bare: {},
        closed: { schema: {} },
        partial: { schema: { title: { type: "string" } }, access: {}, hooks: {} },
        notes: {
          ...table,
          access: {
            read: (auth, note) => note.ownerId === auth?.id && note.title.length > 0,
            update: (auth, note, next) => note.title !== next.title && auth !== null,
            insert: (_auth, note, { table: lookup }) => lookup("partial").get(note.title) === null,
            delete: (auth) => [["ownerId", "==", auth?.id ?? ""]],
          },
          hooks: { beforeInsert: (_auth, note) => ({ ...note, title: note.title.trim() }) },
        },
      },
    },
  },
  routes: (api) =>
    api.get("/notes", async ({ app }) => {
      const note = await app.db("shared").table("notes").get("a");
      const title: string | undefined = note?.title;
      // @ts-expect-error there is no such table
      app.db("none").table("notes");
      // @ts-expect-error there is no such field
      const nothing = note?.titel;
      return { title, nothing };
    }),
});

export const withoutDatabases = defineConfig({
  storage: { buckets: { files: {} } },
  auth: { signup: (facts) => facts.email?.endsWith("@example.com") === true },
});

export const withoutTables = defineConfig({
  databases: {},
  storage: { buckets: { files: { access: { read: (auth, file) => file.uploadedBy === auth?.id } } } },
});

export const nothing: PlatformConfig = defineConfig({});

type Databases = TypesOf<typeof emptyMembers>["databases"];
export const tables: (keyof Databases["shared"])[] = ["bare", "closed", "partial", "notes"];
// @ts-expect-error there is no such table
export type Missing = Databases["none"]["notes"];
