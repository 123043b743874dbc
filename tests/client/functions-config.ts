import { t } from "elysia";
import { defineConfig, Refusal } from "platform";

/** What the tests of functions are about. */
export default defineConfig({
  auth: { anonymous: true },
  routes: (api) =>
    api
      .get("/", () => "root", { access: true })
      .post("/checkout", ({ body, auth }) => ({ accepted: body.orderId, by: auth?.id ?? null }), {
        body: t.Object({ orderId: t.String() }),
      })
      .get("/orders/:id", ({ params, query }) => ({ id: params.id, q: query.q, at: "2026-01-02T03:04:05.000Z" }), {
        query: t.Object({ q: t.Optional(t.String()) }),
      })
      .post("/upload", ({ body }) => ({ size: body.file.size }), { body: t.Object({ file: t.File() }) })
      .post("/refuse", () => {
        throw new Refusal("Paid already", { status: 409 });
      })
      .get("/stream", function* () {
        yield "one";
        yield "two";
      })
      .ws("/chat/:room", {
        body: t.Object({ text: t.String() }),
        message: (ws, { text }) => {
          ws.send({ from: ws.data.auth?.id, room: ws.data.params.room, text });
        },
      }),
});
