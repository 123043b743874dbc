// The types of jobs and schedules that follow from a config: checked by `tsc`, never run. [JB24]
import { t } from "elysia";
import { defineConfig, type JsonValue } from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

export default defineConfig({
  databases: {
    shared: {
      tables: {
        orders: {
          schema: { title: { type: "string", required: true } },
          hooks: {
            afterInsert: async (_auth, order, { jobs }) => {
              await jobs.enqueue("charge", { orderId: order.id });
              // @ts-expect-error: the order's id is missing
              await jobs.enqueue("charge", { count: 1 });
            },
          },
        },
      },
    },
  },
  jobs: {
    charge: {
      data: t.Object({ orderId: t.String(), count: t.Optional(t.Integer()) }),
      run: async ({ data, app, attempt }) => {
        holds<Equal<typeof data.orderId, string>>();
        holds<Equal<typeof data.count, number | undefined>>();
        holds<Equal<typeof attempt, number>>();
        const order = await app.db("shared").table("orders").get(data.orderId);
        holds<Equal<string | undefined, NonNullable<typeof order>["title"] | undefined>>();
        // @ts-expect-error: no such table
        app.db("shared").table("order");
      },
    },
    anything: {
      run: ({ data }) => {
        holds<Equal<typeof data, JsonValue>>();
      },
    },
    // @ts-expect-error: a job without run
    nothing: { retries: 1 },
  },
  cron: {
    nightly: {
      schedule: "@daily",
      run: async ({ app, scheduledAt }) => {
        holds<Equal<typeof scheduledAt, string>>();
        await app.db("shared").table("orders").count();
        // @ts-expect-error: no such namespace
        app.db("other");
        await app.jobs.enqueue("charge", { orderId: "o1" }, { delay: 60, key: "o1" });
        await app.jobs.enqueue("anything", [1, 2, 3]);
        // @ts-expect-error: no such option
        await app.jobs.enqueue("charge", { orderId: "o1" }, { retries: 9 });
        // @ts-expect-error: no such job
        await app.jobs.enqueue("charged", {});
        // @ts-expect-error: a number is no id
        await app.jobs.enqueue("charge", { orderId: 5 });
      },
    },
  },
});
