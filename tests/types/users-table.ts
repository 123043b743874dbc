import { defineConfig, type RecordOf, type TypesOf } from "platform";

// The types that a table of users brings; `tsc` is the test.

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <Claim extends true>(): Claim | undefined => undefined;

const config = defineConfig({
  auth: {
    users: {
      in: "shared",
      schema: {
        bio: { type: "text" },
        plan: { type: "string", enum: ["free", "paid"], required: true, default: "free" },
      },
      fts: ["displayName", "bio"],
      access: {
        read: (auth, user, context) => {
          const name: string | null = user.displayName;
          const plan: "free" | "paid" = user.plan;
          // @ts-expect-error: no such field
          void user.nothing;
          return auth !== null && name !== plan && context.table("docs").exists([["ownerId", "==", user.id]]);
        },
        update: (auth) => auth !== null && [["id", "==", auth.id]],
      },
    },
  },
  databases: {
    shared: {
      tables: {
        notes: { schema: { authorId: { references: "users", onDelete: "setNull" } } },
        docs: {
          schema: { ownerId: { type: "string", unique: true } },
          access: {
            read: (_auth, doc, context) => context.table("users").get(doc.ownerId ?? "")?.plan === "paid",
            // @ts-expect-error: no such table
            insert: (_auth, _doc, context) => context.table("user").exists([]),
          },
        },
      },
    },
    other: { tables: { notes: { schema: { text: { type: "text" } } } } },
  },
  routes: (api) =>
    api.get("/all", async ({ app }) => {
      const note = await app.db("shared").table("notes").expand("authorId").first();
      const author: string | null | undefined = note?.expand.authorId?.displayName;
      if (author === undefined) return [];
      const { items } = await app.db("shared").table("users").list();
      return items.map(({ isAnonymous, email }) => ({ isAnonymous, email }));
    }),
});

type Types = TypesOf<typeof config>;
holds<Equal<keyof Types["databases"]["shared"], "docs" | "notes" | "users">>();
holds<Equal<keyof Types["databases"]["other"], "notes">>();
type User = RecordOf<Types["databases"]["shared"]["users"]>;
holds<
  Equal<
    User,
    {
      id: string;
      createdAt: string;
      displayName: string | null;
      avatarUrl: string | null;
      isAnonymous: boolean;
      email: string | null;
      bio: string | null;
      plan: "free" | "paid";
    }
  >
>();

const named = defineConfig({
  auth: { users: { in: "shared", table: "people" } },
  databases: { shared: { tables: { docs: { schema: { title: { type: "text" } } } } } },
});
holds<Equal<keyof TypesOf<typeof named>["databases"]["shared"], "docs" | "people">>();

const none = defineConfig({ databases: { shared: { tables: { docs: { schema: { title: { type: "text" } } } } } } });
holds<Equal<keyof TypesOf<typeof none>["databases"]["shared"], "docs">>();
