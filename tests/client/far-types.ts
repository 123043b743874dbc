import { createClient } from "../../src/client/index.ts";
import type { config } from "./far-config.ts";

// Types of the records to which references to another file lead: checked by `tsc`, never run. [TC364]

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <Claim extends true>(): Claim | undefined => undefined;

const client = createClient<typeof config>({ url: "http://127.0.0.1:8787" });

async function typed(): Promise<void> {
  const boards = client.db("boards", "one");
  const { items } = await boards.table("tasks").expand("ownerId.homeId", "labels", "notes(taskId)").list();
  const [task] = items;
  if (task === undefined) return;
  holds<Equal<NonNullable<typeof task.expand.ownerId>["age"], number | null>>();
  holds<Equal<NonNullable<NonNullable<typeof task.expand.ownerId>["expand"]["homeId"]>["city"], string>>();
  holds<Equal<(typeof task.expand.labels)[number]["name"], string>>();
  const one = await boards.table("notes").get("id", { expand: ["taskId.userId"] });
  if (one === null) return;
  holds<Equal<NonNullable<NonNullable<typeof one.expand.taskId>["expand"]["userId"]>["plan"], "free" | "paid">>();
  // Back from there, along the references of that file alone.
  const back = await boards.table("tasks").expand("ownerId.homeId.people(homeId)").first();
  holds<
    Equal<
      NonNullable<
        NonNullable<NonNullable<typeof back>["expand"]["ownerId"]>["expand"]["homeId"]
      >["expand"]["people(homeId)"]["items"][number]["age"],
      number | null
    >
  >();
  // @ts-expect-error: no field of that file
  boards.table("tasks").expand("ownerId.cityId");
  // @ts-expect-error: not a table of this namespace
  boards.table("people");
  // @ts-expect-error: no table of another file leads back here
  boards.table("tasks").expand("ownerId.tasks(ownerId)");
}
void typed;
