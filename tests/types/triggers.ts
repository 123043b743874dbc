// What TypeScript makes of triggers and webhooks: checked by `tsc`, never run. [TG20]
import { defineConfig, type FileFacts, type JsonValue, type PlatformConfig, type User } from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

const databases = {
  shared: {
    tables: {
      orders: {
        schema: {
          item: { type: "string", required: true },
          status: { type: "string", enum: ["open", "paid"], required: true },
          amount: { type: "number" },
        },
      },
      free: {},
    },
  },
} as const;
const secret = "whsec_";

export const config: PlatformConfig = defineConfig({
  databases,
  storage: { buckets: { pictures: {} } },
  triggers: {
    everything: {
      on: { table: "shared.orders" },
      filter: [["status", "==", "paid"]],
      run: ({ event, before, after, app, instanceId }) => {
        holds<Equal<typeof event, "insert" | "update" | "delete">>();
        holds<Equal<typeof instanceId, string | null>>();
        if (event === "insert") holds<Equal<typeof before, null>>();
        if (event === "update") {
          holds<Equal<(typeof after)["status"], "open" | "paid">>();
          holds<Equal<(typeof before)["amount"], number | null>>();
          // @ts-expect-error: no such field
          after.titel;
        }
        if (event === "delete") holds<Equal<typeof after, null>>();
        // @ts-expect-error: no such table
        return app.db("shared").table("nothing");
      },
    },
    some: {
      on: { table: "shared.orders", events: ["insert", "update"] },
      run: async ({ after, app }) => {
        holds<Equal<typeof after.item, string>>();
        await app.db("shared").table("orders").update(after.id, { amount: 5 });
      },
    },
    free: {
      on: { table: "shared.free", events: ["insert"] },
      run: ({ after }) => {
        holds<Equal<typeof after.anything, JsonValue | undefined>>();
      },
    },
    uploads: {
      on: { bucket: "pictures", events: ["upload"] },
      run: ({ before, after }) => {
        holds<Equal<typeof before, FileFacts | null>>();
        holds<Equal<typeof after, FileFacts>>();
      },
    },
    accounts: {
      on: { auth: ["signup"] },
      run: ({ after }) => {
        holds<Equal<typeof after, User>>();
      },
    },
    // @ts-expect-error: no such table
    wrong: { on: { table: "shared.nothing" }, run: () => {} },
    // @ts-expect-error: no such bucket
    wrongBucket: { on: { bucket: "nothing" }, run: () => {} },
    wrongFilter: {
      on: { table: "shared.orders" },
      // @ts-expect-error: no such field
      filter: [["titel", "==", "paid"]],
      run: () => {},
    },
  },
  webhooks: {
    erp: { url: "https://a.example", secret, on: { table: "shared.orders" }, filter: [["amount", ">", 5]] },
    // @ts-expect-error: no such table
    wrong: { url: "https://a.example", secret, on: { table: "shared.nothing" } },
  },
});
