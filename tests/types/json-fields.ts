// JSON fields with a type of their own: checked by `tsc`, never run. [TB690]
import { t } from "elysia";
import { defineConfig, type JsonValue, json } from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

interface Address {
  city: string;
  zip?: string;
}

export const config = defineConfig({
  databases: {
    shared: {
      tables: {
        people: {
          schema: {
            home: { type: json<Address>(), required: true },
            work: { type: json<Address>() },
            tags: { type: json<string[]>(), default: [] },
            extra: { type: "json" },
            size: { type: "json", schema: t.Object({ width: t.Integer(), unit: t.Optional(t.String()) }) },
            sizes: { type: "json", schema: t.Array(t.Number()), required: true, default: [] },
            name: { type: "string" },
          },
          access: {
            read: (_auth, record) => {
              holds<Equal<typeof record.home, Address>>();
              holds<Equal<typeof record.work, Address | null>>();
              holds<Equal<typeof record.tags, string[] | null>>();
              holds<Equal<typeof record.extra, JsonValue>>();
              holds<Equal<typeof record.size, { width: number; unit?: string } | null>>();
              holds<Equal<typeof record.sizes, number[]>>();
              return [
                ["home.city", "==", "Wien"],
                ["work", "!=", null],
                ["tags", "contains", "new"],
              ];
            },
            insert: (_auth, record) => record.home.city !== "",
          },
          hooks: {
            beforeInsert: (_auth, record) => ({ ...record, work: { city: record.home.city } }),
            // @ts-expect-error: an address has a city
            beforeUpdate: (_auth, _record, changes) => ({ ...changes, work: { town: "Wien" } }),
          },
        },
      },
    },
  },
  routes: (api) =>
    api.post("/people", async ({ app }) => {
      const people = app.db("shared").table("people");
      const made = await people.insert({ home: { city: "Wien" }, tags: ["a"] });
      holds<Equal<typeof made.home, Address>>();
      // @ts-expect-error: a width is a number
      await people.insert({ size: { width: "1" } });
      // @ts-expect-error: a city is text
      await people.insert({ home: { city: 1 } });
      await people.list({ filter: [["home.city", "startsWith", "W"]] });
      return made.tags;
    }),
});
