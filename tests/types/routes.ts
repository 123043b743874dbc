// What TypeScript makes of the routes of a config: checked by `tsc`, never run. [FN30]
import { t } from "elysia";
import { type Auth, defineConfig, type RouteAccessContext, type TypesOf } from "platform";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

export const config = defineConfig({
  databases: { shared: { tables: { orders: { schema: { cents: { type: "integer", required: true } } } } } },
  routes: (api) =>
    api
      .post(
        "/checkout",
        async ({ auth, body, app, serviceKey, requestId, address }) => {
          holds<Equal<typeof body, { orderId: string }>>();
          holds<Equal<typeof serviceKey, { name: string } | null>>();
          const order = await app.db("shared").table("orders").get(body.orderId);
          // @ts-expect-error: no such table
          app.db("shared").table("order");
          return { cents: order?.cents ?? 0, by: auth?.id ?? address + requestId };
        },
        // With their types: without them TypeScript does not look at the schema before the handler.
        {
          access: (auth: Auth | null, { params }: RouteAccessContext) => auth?.id === params["id"],
          timeout: 5,
          body: t.Object({ orderId: t.String() }),
        },
      )
      .get("/mine", ({ auth }) => ({ id: auth?.id }), { access: (auth) => auth?.role === "admin" })
      // @ts-expect-error: neither true nor a rule
      .get("/wrong", () => "x", { access: "everybody" }),
});

type Api = TypesOf<typeof config>["routes"];
type Routes = Api extends { "~Routes": infer R } ? R : never;
type Checkout = Routes extends { api: { functions: { checkout: { post: { response: { 200: infer Answer } } } } } }
  ? Answer
  : never;
holds<Equal<Checkout, { cents: number; by: string }>>();
