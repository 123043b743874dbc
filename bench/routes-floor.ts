import { Elysia, t } from "elysia";

/** Floor of routes: the same ones on plain Elysia. */
const Echo = t.Object({ title: t.String(), n: t.Number() });
new Elysia()
  .post("/api/functions/echo", ({ body }) => ({ title: body.title, n: body.n + 1 }), { body: Echo, response: Echo })
  .get("/api/functions/items/:id", ({ params }) => ({ id: params.id }), { response: t.Object({ id: t.String() }) })
  .listen({ port: 0, hostname: "127.0.0.1" }, ({ url }) => {
    process.stdout.write(`${url.origin}\n`);
  });
