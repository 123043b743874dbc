import { defineConfig } from "platform";

// A config with references to another file, whose records `app` gives in their types. [TC364]

export const config = defineConfig({
  auth: {
    users: {
      in: "shared",
      schema: { plan: { type: "string", enum: ["free", "paid"], required: true, default: "free" } },
    },
  },
  databases: {
    shared: {
      tables: {
        homes: { schema: { city: { type: "string", required: true } } },
        people: { schema: { homeId: { references: "homes", required: true }, age: { type: "integer" } } },
        labels: { schema: { name: { type: "string", required: true } } },
      },
    },
    boards: {
      instance: true,
      tables: {
        tasks: {
          schema: {
            ownerId: { references: "shared/people", onDelete: "setNull" },
            userId: { references: "shared/users", onDelete: "setNull" },
            labels: { type: "references", references: "shared/labels", onDelete: "remove" },
          },
        },
        notes: { schema: { taskId: { references: "tasks", onDelete: "cascade" } } },
      },
    },
  },
  routes: (api) =>
    api.get("/far", async ({ app }) => {
      const tasks = app.db("boards", "one").table("tasks");
      const task = await tasks.expand("ownerId.homeId", "labels", "userId").first();
      const city: string | undefined = task?.expand.ownerId?.expand.homeId?.city;
      const plan: "free" | "paid" | undefined = task?.expand.userId?.plan;
      const names: string[] = task?.expand.labels.map(({ name }) => name) ?? [];
      // @ts-expect-error: the other file has no such field
      tasks.expand("ownerId.workId");
      // @ts-expect-error: no such field
      void task?.expand.ownerId?.name;
      return { city, plan, names };
    }),
});
