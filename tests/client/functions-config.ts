import { sse, t } from "elysia";
import { defineConfig, Refusal } from "platform";

/** Config of the tests of functions. */
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
      .get("/events", async function* () {
        yield sse({ event: "tick", data: { n: 1 } });
        yield sse({ event: "tick", data: "two" });
      })
      .get("/token", ({ headers }) => headers["authorization"]?.split(" ")[1] ?? "")
      .get("/number", () => 42)
      .get("/flag", () => true)
      .get("/nothing", () => undefined)
      .get("/bytes", ({ set }) => {
        set.headers["content-type"] = "application/octet-stream";
        return new Uint8Array([1, 2, 3]);
      })
      .get("/echo", ({ query, headers }) => ({ query, header: headers["x-mine"] ?? null, at: "2026-01-02" }))
      .post("/text", ({ body }) => `got ${body}`, { body: t.String() })
      .put("/json", ({ body }) => ({ got: body }), { body: t.Object({ list: t.Array(t.Number()), none: t.Null() }) })
      .post(
        "/form",
        ({ body }) => ({ sizes: body.files.map(({ size }) => size), names: body.names, about: body.about }),
        { body: t.Object({ files: t.Files(), names: t.Array(t.String()), about: t.ObjectString({ n: t.Number() }) }) },
      )
      .delete("/thing/:id", ({ params, status }) => status(410, { gone: params.id }))
      .get("/away", ({ redirect }) => redirect("/api/functions/number"))
      .ws("/chat/:room", {
        body: t.Object({ text: t.String() }),
        message: (ws, { text }) => {
          ws.send({ from: ws.data.auth?.id, room: ws.data.params.room, text });
        },
      }),
});
