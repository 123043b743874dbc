// The types of lookups, filters and `app` that follow from a config: checked by `tsc`, never run. [CF200] [CF201] [CF202]
import {
  type AppAccess,
  type AppOf,
  type Auth,
  createPlatform,
  defineConfig,
  type Filter,
  type JsonValue,
  type RecordOf,
  type RuleContext,
  type TypesOf,
} from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

// Helpers that know nothing of a config.
const isMember = (auth: Auth | null, { db }: Pick<RuleContext, "db">): boolean =>
  auth !== null && db("shared").table("members").get(auth.id) !== null;
const own = (auth: Auth | null): Filter => [["ownerId", "==", auth?.id ?? ""]];
const notify = (app: AppAccess): Promise<void> => app.broadcast("broadcast:news", "new", {});

const config = defineConfig({
  databases: {
    workspaces: {
      instance: true,
      access: {
        create: (auth, id, { table, instanceId, sent }) =>
          auth !== null &&
          sent?.includes("id") !== true &&
          instanceId === id &&
          !table("members").exists([["id", "==", id]]),
        open: (auth, _id, { table }) => auth !== null && table("members").get(auth.id) !== null,
      },
      tables: {
        tasks: {
          access: {
            read: (auth, task, context) => {
              holds<Equal<typeof context.namespace, string | null>>();
              const member = context.table("members").get(auth?.id ?? "");
              holds<Equal<typeof member, { id: string; role: "owner" | "editor"; name: string | null } | null>>();
              // @ts-expect-error: no such table in this namespace
              context.table("member");
              // @ts-expect-error: no such field
              context.table("members").first([["rol", "==", "owner"]]);
              // @ts-expect-error: not one of its values
              context.table("members").first([["role", "==", "admin"]]);
              // @ts-expect-error: no such operator
              context.table("members").first([["role", "===", "owner"]]);
              // @ts-expect-error: in takes a list
              context.table("members").list([["role", "in", "owner"]]);
              // @ts-expect-error: points are numbers
              context.table("tasks").list([["points", ">", "5"]]);
              // @ts-expect-error: numbers are not searched
              context.table("tasks").list([["points", "contains", "5"]]);
              // @ts-expect-error: a limit is a number
              context.table("members").list([["role", "==", "owner"]], { limit: "5" });
              // @ts-expect-error: no such namespace
              context.db("share");
              // @ts-expect-error: no such table there
              context.db("shared").table("tasks");
              // @ts-expect-error: no such field
              member?.roll;
              const films = context
                .db("shared")
                .table("films")
                .list([
                  ["year", ">=", 1990],
                  ["extra.city", "==", "Rome"],
                ]);
              holds<Equal<(typeof films)[number]["title"], string>>();
              holds<Equal<(typeof films)[number]["extra"], JsonValue>>();
              const others = context
                .db("workspaces", "other")
                .table("members")
                .list([["role", "in", ["owner", "editor"]]]);
              return (
                task.done === true || [
                  ["title", "in", others.map(({ name }) => name)],
                  ["points", "<", films.length],
                ]
              );
            },
            update: (auth, task, next, { table }) =>
              table("members").get(auth?.id ?? "")?.role === "owner" || task.title === next.title,
            insert: (auth, _task, { table }) => {
              const role = table("members").get(auth?.id ?? "")?.role;
              holds<Equal<typeof role, "owner" | "editor" | undefined>>();
              return role !== undefined;
            },
            delete: (auth, _task, context) => isMember(auth, context),
          },
          schema: {
            title: { type: "string", required: true },
            points: { type: "integer" },
            done: { type: "boolean" },
          },
          hooks: {
            beforeInsert: (_auth, task, { table }) => (table("members").get(task.id) === null ? task : undefined),
            beforeUpdate: async (auth, task, changes, context) => {
              holds<Equal<typeof context.namespace, string>>();
              holds<Equal<typeof context.instanceId, string | null>>();
              const member = context.table("members").get(auth?.id ?? "");
              holds<Equal<NonNullable<typeof member>["role"], "owner" | "editor">>();
              const films = context.db("shared").table("films");
              const seen = await context.as(auth).db("shared").table("films").get(task.title);
              holds<Equal<NonNullable<typeof seen>["year"], number | null>>();
              await context
                .as(null)
                .db("shared")
                .transaction((tx) => tx.table("films").first([["year", "==", 1990]])?.year);
              // @ts-expect-error: no such namespace
              context.as(auth).db("nope");
              // @ts-expect-error: no such table there
              context.as(auth).db("shared").table("nix");
              // @ts-expect-error: no such field
              await context.as(auth).db("shared").table("films").insert({ titel: "x" });
              // @ts-expect-error: instances are not for users
              context.as(auth).db("workspaces").instances;
              const film = await films.get(task.title);
              holds<Equal<NonNullable<typeof film>["year"], number | null>>();
              await films.update("x", { year: { $op: "increment", value: 1 }, title: "y" });
              // @ts-expect-error: a text is not incremented
              await films.update("x", { title: { $op: "increment", value: 1 } });
              // @ts-expect-error: no such field
              await films.insert({ titel: "x" });
              // @ts-expect-error: no such table
              context.db("shared").table("film");
              await context.db("shared").transaction((tx) => {
                const found = tx.table("films").first([["title", "==", "x"]]);
                holds<Equal<NonNullable<typeof found>["title"], string>>();
                // @ts-expect-error: no such table
                tx.table("movies");
                return found?.title ?? null;
              });
              const best = await films
                .where("year", ">=", 1990)
                .orWhere("title", "startsWith", "A")
                .sort("year", "desc")
                .first();
              holds<Equal<NonNullable<typeof best>["title"], string>>();
              const { items, total } = await films
                .where([["extra.city", "==", "Rome"]])
                .limit(5)
                .page(2, { perPage: 5 });
              holds<Equal<(typeof items)[number]["year"], number | null>>();
              holds<Equal<typeof total, number | null>>();
              const groups = await films
                .where("year", ">", 1990)
                .aggregate({ select: ["count()", "max(year)"], groupBy: ["title"] });
              holds<Equal<(typeof groups)[number], { title: string; "count()": number; "max(year)": number | null }>>();
              const short = await films.fields("title").first();
              // @ts-expect-error: the year is not asked for
              short?.year;
              const expanded = await films.expand("directorId").first();
              holds<Equal<NonNullable<NonNullable<typeof expanded>["expand"]["directorId"]>["name"], string | null>>();
              // @ts-expect-error: no such field
              films.where("yaer", ">", 1990);
              // @ts-expect-error: years are numbers
              films.where("year", ">", "1990");
              // @ts-expect-error: numbers are not searched
              films.where("year", "contains", "19");
              // @ts-expect-error: no such field in a filter
              films.where([["yaer", ">", 1990]]);
              // @ts-expect-error: a filter is never undefined
              films.where(undefined);
              // @ts-expect-error: no such field
              films.sort("yaer");
              // @ts-expect-error: no such direction
              films.sort("year", "down");
              // @ts-expect-error: no reference
              films.expand("title");
              // @ts-expect-error: texts are not summed
              films.aggregate({ select: ["sum(title)"] });
              // @ts-expect-error: no such field
              films.aggregate({ select: ["count()"], groupBy: ["genre"] });
              // @ts-expect-error: a query takes no filter in its options
              films.where("year", ">", 1990).list({ filter: [] });
              await context.db("shared").transaction((tx) => {
                const query = tx.table("films").where("year", ">", 1990).sort("title");
                const list = query.list();
                holds<Equal<(typeof list.items)[number]["title"], string>>();
                holds<Equal<typeof list.total, null>>();
                const first = query.expand("directorId").first();
                holds<Equal<NonNullable<NonNullable<typeof first>["expand"]["directorId"]>["name"], string | null>>();
                const [group] = query.aggregate({ select: ["count()"] });
                holds<Equal<NonNullable<typeof group>["count()"], number>>();
                holds<Equal<ReturnType<typeof query.exists>, boolean>>();
                // @ts-expect-error: no such field
                tx.table("films").where("yaer", ">", 1990);
                // @ts-expect-error: a query is not awaited for its filter
                query.list([["year", ">", 1990]]);
                // @ts-expect-error: no reference
                query.expand("title");
                return list.hasMore;
              });
              const owners = context.table("members").where("role", "==", "owner").list();
              holds<Equal<(typeof owners.items)[number]["name"], string | null>>();
              // @ts-expect-error: not one of its values
              context.table("members").where("role", "==", "admin");
              return { ...changes, points: (changes.points ?? 0) + 1 };
            },
            afterInsert: async (_auth, task, app) => {
              await notify(app);
              await app.users.get(task.id);
              const tasks = app.db("workspaces", "x").table("tasks");
              // @ts-expect-error: no such field
              await tasks.list({ filter: [["titel", "==", "x"]] });
            },
          },
        },
        members: {
          schema: {
            role: { type: "string", enum: ["owner", "editor"], required: true },
            name: { type: "string" },
            createdAt: false,
            updatedAt: false,
          },
          indexes: [{ fields: ["role"] }],
        },
      },
    },
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true },
            year: { type: "integer" },
            extra: { type: "json" },
            ownerId: { type: "string" },
            directorId: { references: "directors" },
          },
          access: { read: own, insert: (auth) => own(auth) },
        },
        members: {},
        directors: { schema: { name: { type: "string" } } },
      },
    },
  },
  storage: {
    buckets: {
      files: {
        access: {
          read: (auth, _file, { db, namespace }) => {
            holds<Equal<typeof namespace, string | null>>();
            return auth !== null && db("workspaces", "a").table("members").get(auth.id)?.role === "owner";
          },
          write: (auth, file, { db, table }) => {
            // @ts-expect-error: a bucket is of no namespace
            table("members");
            // @ts-expect-error: no such table
            return db("shared").table("movies").get(file.key) !== null && auth !== null;
          },
        },
      },
    },
  },
  rooms: {
    lounge: {
      access: {
        join: (auth, roomId, { db }) => db("shared").table("films").get(roomId)?.title === auth.id,
        action: (_auth, _id, _type, _payload, { db }) => {
          const films = db("shared").table("films");
          // @ts-expect-error: a year is a number
          return films.exists([["year", "==", "1990"]]);
        },
      },
    },
  },
  auth: {
    signup: ({ email, emailVerified }, { db }) => {
      const films = db("shared").table("films");
      // @ts-expect-error: no such field
      return emailVerified && films.exists([["titel", "==", email ?? ""]]);
    },
  },
  realtime: {
    access: {
      presence: (auth, _channel, { db }) => db("workspaces", "a").table("members").get(auth.id) !== null,
      // @ts-expect-error: no such namespace
      broadcast: (auth, _channel, _event, { db }) => db("work").table("members").get(auth.id) !== null,
    },
  },
});

// What a config declares, for others.
type Types = TypesOf<typeof config>;
holds<Equal<keyof Types["databases"], "workspaces" | "shared">>();
export const names: [keyof Types["buckets"], keyof Types["rooms"]] = ["files", "lounge"];
// @ts-expect-error: no such bucket
export const unknownBucket: keyof Types["buckets"] = "pictures";
type Film = RecordOf<Types["databases"]["shared"]["films"]>;
holds<Equal<Film["year"], number | null>>();

export async function embed(): Promise<string | undefined> {
  const { app } = await createPlatform(config);
  const film = await app.db("shared").table("films").get("x");
  // @ts-expect-error: no such table
  app.db("shared").table("filmz");
  const typed: AppOf<Types["databases"]> = app;
  const { items } = await typed
    .db("workspaces", "a")
    .table("members")
    .list({ filter: [["role", "==", "owner"]] });
  holds<Equal<(typeof items)[number]["role"], "owner" | "editor">>();
  return film?.title;
}

// An untyped config gives an untyped `app`.
export async function embedUntyped(): Promise<unknown> {
  const { app } = await createPlatform({ kv: { a: {} } });
  return app.db("anything").table("at all").get("x");
}
