// What TypeScript makes of JSON fields with a type of their own: checked by `tsc`, never run. [TB690]

import { defineConfig, json } from "platform";
import { createClient, type RecordOf } from "../../src/client/index.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

interface Address {
  city: string;
  zip?: string;
}

const config = defineConfig({
  databases: {
    shared: {
      tables: {
        people: {
          schema: { home: { type: json<Address>(), required: true }, tags: { type: json<string[]>() } },
          access: { read: true, insert: true },
        },
      },
    },
  },
});
const people = createClient<typeof config>({ url: "http://127.0.0.1:8787" }).db("shared").table("people");
holds<Equal<RecordOf<typeof config, "shared", "people">["home"], Address>>();

export async function uses() {
  const found = await people.where("home.city", "startsWith", "W").where("tags", "contains", "new").list();
  holds<Equal<(typeof found.items)[number]["tags"], string[] | null>>();
  await people.insert({ home: { city: "Wien" }, tags: ["new"] });
  // @ts-expect-error: a city is text
  await people.insert({ home: { city: 1 } });
  // @ts-expect-error: values of JSON have no order
  void people.aggregate({ select: ["max(home)"] });
}
