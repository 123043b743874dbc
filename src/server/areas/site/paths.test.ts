import { expect, test } from "bun:test";
import { hasHash, sitePath } from "./paths.ts";

test("[SI7] names with a hash are found, words and dates are not", () => {
  const hashed = [
    "index-B2x9kQz1.js",
    "main.3f2a1b9c.js",
    "assets/main.3f2a1b9c.chunk.js",
    "index-B_x-3kZq.css",
    "a-DiwrgTd4.js.map",
  ];
  expect(hashed.filter((name) => !hasHash(name))).toEqual([]);
  const plain = [
    "index.html",
    "my-component.js",
    "report-20241101.pdf",
    "jquery-3.6.0.min.js",
    "my-component2.js",
    "main.js",
  ];
  const others = ["index-B2x9kQz1.html", "photo-2024summer.jpg", "a-MyComponent.js", "deadbeef1234"];
  expect([...plain, ...others].filter(hasHash)).toEqual([]);
});

test("[SI9] paths that no file can have", () => {
  const none = [
    "//",
    "/a//b",
    "/.env",
    "/a/.git/config",
    "/..",
    "/%2e%2e/x",
    "/a%2fb",
    "/a%5cb",
    "/a%00",
    "/%",
    "/%ff",
    "/a/.well-known/x",
  ];
  expect(none.filter((path) => sitePath(path) !== null)).toEqual([]);
  const own = ["/api", "/api/x", "/admin", "/swagger/", "/client", "/metrics", "/%61pi/x"];
  expect(own.filter((path) => sitePath(path) !== null)).toEqual([]);
  expect(sitePath(`/${"x".repeat(3_000)}`)).toBeNull();
  expect(sitePath("/")).toEqual({ path: "", endsWithSlash: true });
  expect(sitePath("/a%20b/c/")).toEqual({ path: "a b/c", endsWithSlash: true });
  expect(sitePath("/.well-known/security.txt")).toEqual({ path: ".well-known/security.txt", endsWithSlash: false });
  expect(sitePath("/apis")).toEqual({ path: "apis", endsWithSlash: false });
});
