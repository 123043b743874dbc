import { defineConfig, field, type RecordOf, some, type TypesOf } from "platform";

// The types that views bring; `tsc` is the test.

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <Claim extends true>(): Claim | undefined => undefined;

const config = defineConfig({
  auth: { users: { in: "shared" } },
  databases: {
    shared: {
      tables: {
        films: { schema: { title: { type: "string", required: true }, genre: { type: "string" } } },
        members: { schema: { filmId: { type: "string", unique: true }, userId: { type: "string" } } },
      },
      views: {
        top: {
          sql: "SELECT id, title, 1.5 AS stars, createdAt FROM films",
          schema: {
            title: { type: "string", required: true },
            stars: { type: "number" },
            state: { type: "string", enum: ["new", "old"], required: true },
            createdAt: { type: "datetime", required: true },
          },
          access: {
            read: (auth, film, context) => {
              const stars: number | null = film.stars;
              const state: "new" | "old" = film.state;
              // @ts-expect-error: no such field
              void film.nothing;
              // @ts-expect-error: rules look up no views
              context.table("top");
              if (context.table("members").exists([["filmId", "==", film.id]])) return true;
              return auth !== null && stars !== null && state === "new" && [["stars", ">", 3]];
            },
          },
          live: ["films", "users"],
        },
        plain: {
          sql: "SELECT id, genre FROM films",
          schema: { genre: { type: "string" } },
          access: { read: () => [some("members", [["filmId", "==", field("id")]])] },
          live: ["films"],
        },
      },
    },
    other: { tables: { notes: { schema: { text: { type: "text" } } } } },
    teams: {
      instance: true,
      tables: { tasks: { schema: { done: { type: "boolean" } } } },
      views: { open: { sql: "SELECT id FROM tasks WHERE NOT done", schema: {}, access: { read: true } } },
    },
  },
  routes: (api) =>
    api.get("/top", async ({ app }) => {
      const { items } = await app.db("shared").table("top").list();
      // @ts-expect-error: a view of another namespace
      app.db("other").table("top");
      return items.map(({ title, stars }) => ({ title, stars }));
    }),
});

type Types = TypesOf<typeof config>;
holds<Equal<keyof Types["databases"]["shared"], "films" | "members" | "top" | "plain" | "users">>();
holds<Equal<keyof Types["databases"]["other"], "notes">>();
holds<Equal<keyof Types["databases"]["teams"], "tasks" | "open">>();
type Top = RecordOf<Types["databases"]["shared"]["top"]>;
holds<Equal<Top, { id: string; title: string; stars: number | null; state: "new" | "old"; createdAt: string }>>();
holds<Equal<RecordOf<Types["databases"]["shared"]["plain"]>, { id: string; genre: string | null }>>();
holds<Equal<RecordOf<Types["databases"]["teams"]["open"]>, { id: string }>>();

const none = defineConfig({ databases: { shared: { tables: { docs: { schema: { title: { type: "text" } } } } } } });
holds<Equal<keyof TypesOf<typeof none>["databases"]["shared"], "docs">>();
