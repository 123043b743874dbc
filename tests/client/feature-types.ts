// What TypeScript makes of rooms, functions and buckets: checked by `tsc`, never run. [TC92] [TC100] [TC110]
import { t } from "elysia";
import { defineConfig, type JsonValue } from "platform";
import { createAdminClient } from "../../src/client/admin/index.ts";
import { createClient } from "../../src/client/index.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

const config = defineConfig({
  storage: { buckets: { posters: {} } },
  rooms: {
    quiz: {
      actions: {
        guess(_room, _player, payload: { value: number }) {
          return { isRight: payload.value === 42 };
        },
        maybe: (_room, _player, payload: { value?: number }) => payload.value ?? null,
        untyped(room, player, payload) {
          room.sendTo(player.userId, "echo", payload);
        },
        later: async () => ["a", 1],
      },
    },
  },
  routes: (api) =>
    api
      .post("/checkout", ({ body }) => ({ accepted: body.orderId !== "" }), {
        body: t.Object({ orderId: t.String() }),
      })
      .get("/orders/:id", ({ params, query }) => ({ id: params.id, q: query.q }), {
        query: t.Object({ q: t.Optional(t.String()) }),
      }),
});

export async function rooms(): Promise<void> {
  const client = createClient<typeof config>({ url: "" });
  const room = await client.rooms("quiz").join("a");
  const guessed = await room.act("guess", { value: 1 });
  holds<Equal<typeof guessed, { isRight: boolean }>>();
  const nothing = await room.act("untyped", "any JSON");
  holds<Equal<typeof nothing, null>>();
  const later = await room.act("later");
  holds<Equal<typeof later, (string | number)[]>>();
  await room.act("maybe");
  await room.act("maybe", { value: 1 });
  // @ts-expect-error: the payload is missing
  await room.act("guess");
  // @ts-expect-error: another payload
  await room.act("guess", { value: "1" });
  // @ts-expect-error: no such action
  await room.act("gess", { value: 1 });
  // @ts-expect-error: no such rooms
  client.rooms("chess");
  holds<Equal<typeof room.shared, { [key: string]: JsonValue }>>();
}

export async function functions(): Promise<void> {
  const client = createClient<typeof config>({ url: "" });
  const { data, error } = await client.functions.checkout.post({ orderId: "1" });
  if (error === null) holds<Equal<typeof data, { accepted: boolean }>>();
  // @ts-expect-error: another body
  await client.functions.checkout.post({ order: "1" });
  const order = await client.functions.orders({ id: "1" }).get({ query: { q: "x" } });
  if (order.data !== null) holds<Equal<typeof order.data.id, string>>();
  // @ts-expect-error: no such route
  client.functions.check.post({});
}

export async function servers(): Promise<void> {
  const admin = createAdminClient<typeof config>({ url: "", serviceKey: "" });
  const { data } = await admin.functions.checkout.post({ orderId: "1" });
  if (data !== null) holds<Equal<typeof data, { accepted: boolean }>>();
  const count = await admin.kv("cache").get<number>("count");
  holds<Equal<typeof count, number | null>>();
  const [user] = (await admin.users.list()).items;
  if (user !== undefined) holds<Equal<typeof user.email, string | null>>();
  // @ts-expect-error: no such bucket
  admin.storage("postcards");
}

export async function others(): Promise<void> {
  const client = createClient<typeof config>({ url: "" });
  await client.storage("posters").upload("a", new Blob([]));
  // @ts-expect-error: no such bucket
  client.storage("postcards");
  const presence = client.presence<{ mood: string }>("lobby");
  holds<Equal<(typeof presence.users)[number]["state"]["mood"], string>>();
  // @ts-expect-error: another state
  await presence.track({ moody: "" });
  // @ts-expect-error: no objects
  client.analytics.track("x", { a: {} });
  const untyped = createClient({ url: "" });
  const room = await untyped.rooms("any").join("a");
  const result = await room.act("whatever", { a: 1 });
  holds<Equal<typeof result, JsonValue>>();
}
