// What TypeScript makes of a config: checked by `tsc`, never run. [CF40] [CF331]
import {
  type Auth,
  defineConfig,
  type JsonValue,
  type PlatformConfig,
  type RecordFile,
  type RecordOf,
  type Rule,
  type TableRecord,
} from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

const ownerOnly: Rule = (auth, record) => record["ownerId"] === auth?.id;
const owned = (auth: Auth | null, record: { ownerId: JsonValue }): boolean => record.ownerId === auth?.id;
const shared = {
  notes: { schema: { ownerId: { type: "string" } }, access: { read: ownerOnly, update: owned } },
} as const;

export const inferred: PlatformConfig = defineConfig({
  databases: {
    shared: {
      tables: {
        // Rules before the schema they are about: the order of members does not matter.
        posts: {
          access: {
            read: true,
            insert: (auth, record) => record.ownerId === auth?.id,
            update: (auth, record, next) => {
              holds<Equal<typeof auth, Auth | null>>();
              holds<Equal<typeof record.title, string>>();
              holds<Equal<typeof record.kind, "draft" | "published">>();
              holds<Equal<typeof next.stars, number | null>>();
              holds<Equal<typeof record.extra, JsonValue>>();
              holds<Equal<typeof record.createdAt, string>>();
              // @ts-expect-error: updatedAt is switched off
              record.updatedAt;
              // @ts-expect-error: no such field
              record.titel;
              return [["ownerId", "==", auth?.id ?? ""]];
            },
            delete: async (auth) => auth?.role === "admin",
          },
          schema: {
            title: { type: "string", required: true },
            ownerId: { type: "string" },
            kind: { type: "text", enum: ["draft", "published"], required: true },
            stars: { type: "integer" },
            extra: { type: "json" },
            updatedAt: false,
          },
          hooks: {
            beforeInsert: (auth, record) => ({ ...record, ownerId: auth?.id ?? null }),
            beforeUpdate: (_auth, record, changes) => {
              holds<Equal<typeof record.title, string>>();
              return { ...changes, stars: (changes.stars ?? 0) + 1 };
            },
            beforeDelete: (_auth, record) => {
              if (record.kind === "published") throw new Error("published");
            },
            afterInsert: async (_auth, record, app) => app.broadcast("broadcast:posts", "new", { title: record.title }),
          },
        },
        // Without a schema, any field is JSON.
        free: {
          access: {
            read: (auth, record) => {
              holds<Equal<typeof record, TableRecord>>();
              return record["ownerId"] === auth?.id;
            },
          },
        },
      },
    },
    teams: {
      instance: true,
      access: { create: (auth) => auth !== null, open: (auth, instanceId) => auth?.custom["team"] === instanceId },
      tables: {
        notes: { schema: { stars: { type: "number" } }, access: { read: (_auth, { stars }) => (stars ?? 0) > 3 } },
      },
    },
  },
});

// Configs and tables that are made elsewhere.
const plain: PlatformConfig = { databases: { a: { tables: { t: { access: { read: ownerOnly } } } } } };
const name: string = "posts";
export const others = [
  defineConfig(plain),
  defineConfig({}),
  defineConfig({ databases: { shared: { tables: shared } } }),
  defineConfig({
    databases: { [name]: { tables: { [name]: { access: { read: (_auth, record) => record["x"] === 1 } } } } },
  }),
];

holds<
  Equal<RecordOf<{ createdAt: false; updatedAt: false; a: { type: "boolean" } }>, { id: string; a: boolean | null }>
>();
holds<
  Equal<
    RecordOf<{ createdAt: false; updatedAt: false; at: { type: "geo"; required: true } }>,
    { id: string; at: { lat: number; lng: number } }
  >
>();
defineConfig({
  databases: {
    shared: {
      tables: {
        places: {
          schema: { at: { type: "geo" }, name: { type: "string" } },
          access: {
            read: () => [
              ["at", "==", null],
              ["at", "inBox", { south: 0, west: 170, north: 1, east: -170 }],
            ],
            // @ts-expect-error: a circle has meters
            update: () => [["at", "within", { lat: 48.2, lng: 16.37 }]],
            // @ts-expect-error: a text has no place
            delete: () => [["name", "within", { lat: 48.2, lng: 16.37, meters: 5 }]],
          },
        },
      },
    },
  },
});
holds<
  Equal<
    RecordOf<{ createdAt: false; updatedAt: false; tags: { type: "references"; references: "tags" } }>,
    { id: string; tags: string[] }
  >
>();
defineConfig({
  databases: {
    shared: {
      tables: {
        tags: {},
        docs: {
          schema: { tags: { type: "references", references: "tags", max: 5 }, name: { type: "string" } },
          access: {
            read: (auth) => [
              ["tags", "has", auth?.id ?? ""],
              ["tags", "hasAny", ["a", "b"]],
            ],
            insert: (_auth, record) => record.tags.length > 0,
            // @ts-expect-error: a list of ids
            update: () => [["tags", "hasAll", "a"]],
            // @ts-expect-error: a text has no ids
            delete: () => [["name", "has", "a"]],
          },
        },
      },
    },
  },
});
holds<
  Equal<RecordOf<{ createdAt: false; updatedAt: false; on: { type: "date" } }>, { id: string; on: string | null }>
>();

// Files of records.
holds<
  Equal<
    RecordOf<{
      createdAt: false;
      updatedAt: false;
      one: { type: "file"; bucket: "b" };
      must: { type: "file"; bucket: "b"; required: true };
      all: { type: "file"; bucket: "b"; many: 5 };
    }>,
    { id: string; one: RecordFile | null; must: RecordFile; all: RecordFile[] }
  >
>();
defineConfig({
  storage: { buckets: { b: {} } },
  databases: {
    shared: {
      tables: {
        docs: {
          schema: {
            one: { type: "file", bucket: "b", max: 1000, types: ["image/*"] },
            all: { type: "file", bucket: "b", many: 5 },
          },
          access: {
            read: (_auth, doc) => doc.one?.type === "image/png" && doc.all.every(({ size }) => size > 1),
            insert: () => [
              ["one", "!=", null],
              ["one.size", "<", 100],
            ],
            // @ts-expect-error: no such member of a file
            delete: (_auth, doc) => doc.one?.length === 1,
          },
        },
      },
    },
  },
});

defineConfig({
  // @ts-expect-error: no such member
  databses: {},
});
defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          // @ts-expect-error: no such type
          schema: { title: { type: "strng" } },
        },
      },
    },
  },
});
defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          // @ts-expect-error: no such member of a field
          schema: { title: { type: "string", requird: true } },
        },
      },
    },
  },
});
defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          access: {
            // @ts-expect-error: a rule gives a boolean or a filter
            read: () => "yes",
          },
        },
      },
    },
  },
});
defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          schema: { title: { type: "string" } },
          hooks: {
            // @ts-expect-error: a title is a string
            beforeInsert: () => ({ title: 5 }),
          },
        },
      },
    },
  },
});
defineConfig({
  storage: {
    buckets: {
      // @ts-expect-error: a size is a number
      files: { maxFileSize: "5 MiB" },
    },
  },
});
defineConfig({
  rooms: {
    // @ts-expect-error: no such member of a room
    lounge: { messagesRate: 5 },
  },
});
defineConfig({
  // @ts-expect-error: keep and to are missing
  backups: { schedule: "@daily" },
});
defineConfig({
  vectorize: {
    // @ts-expect-error: no such metric
    tastes: { dimensions: 8, metric: "manhattan" },
  },
});
