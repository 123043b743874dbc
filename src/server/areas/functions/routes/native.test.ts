import { expect, test } from "bun:test";
import { Elysia } from "elysia";
import { guardRoutes } from "./guarded.ts";
import { nativeRoutes } from "./native.ts";

function nativePatterns(build: (api: Elysia) => unknown): string[] {
  const api = new Elysia();
  const known = guardRoutes(
    api,
    (_, handle) => handle,
    () => null,
  );
  build(api);
  const answer = (): Response => new Response();
  const routes = nativeRoutes(api, known, { serve: answer, answer });
  return Object.entries(routes).flatMap(([path, handlers]) =>
    Object.keys(handlers).map((method) => `${method} ${path}`),
  );
}

const nothing = () => "";

test("[FN7] Bun's router gets the routes for which both routers agree about every path", () => {
  const plain = (api: Elysia) =>
    api.get("/a", nothing).post("/a", nothing).get("/b/:id", nothing).get("/b/me", nothing);
  expect(nativePatterns(plain)).toEqual(["GET /a", "POST /a", "GET /b/:id", "GET /b/me"]);
});

test("[FN7] paths that two patterns with parameters match are left to Elysia's router", () => {
  const crossing = (api: Elysia) => api.get("/a/:x/c", nothing).get("/a/b/:y", nothing).get("/d/:x", nothing);
  expect(nativePatterns(crossing)).toEqual(["GET /d/:x"]);
  const open = (api: Elysia) =>
    api.get("/r/*", nothing).get("/r/:x", nothing).get("/r/s", nothing).get("/m/:x?", nothing);
  expect(nativePatterns(open)).toEqual(["GET /r/s"]);
});

test("[FN7] what another route takes with every method is left to Elysia's router", () => {
  const every = (api: Elysia) => api.all("/a/:x", nothing).get("/a/:x", nothing).get("/b", nothing).all("/b", nothing);
  expect(nativePatterns(every)).toEqual([]);
  const socket = (api: Elysia) => api.ws("/s", {}).get("/s", nothing).get("/t", nothing);
  expect(nativePatterns(socket)).toEqual(["GET /t"]);
});

test("[FN7] patterns that the routers read differently, and methods of other kinds, are left to Elysia's router", () => {
  const odd = (api: Elysia) =>
    api.get("/caf\u00e9", nothing).get("/a/", nothing).get("/%61", nothing).get("/f/:n.txt", nothing);
  expect(nativePatterns(odd)).toEqual([]);
  expect(nativePatterns((api) => api.route("PURGE", "/a", nothing).options("/b", nothing))).toEqual([]);
});

test("[FN16] a hook that concerns every request leaves all routes to Elysia's router", () => {
  expect(nativePatterns((api) => api.onRequest(() => {}).get("/a", nothing))).toEqual([]);
  expect(nativePatterns((api) => api.wrap((handle) => handle).get("/a", nothing))).toEqual([]);
  expect(nativePatterns((api) => api.trace(() => {}).get("/a", nothing))).toEqual([]);
});
