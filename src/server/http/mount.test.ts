import { expect, test } from "bun:test";
import { Type } from "typebox";
import { endpoint } from "./endpoint.ts";
import { documentedPath, operationIdOf } from "./openapi/operation.ts";
import { groupWide, isWide, pathAt, restOfPath } from "./wide-paths.ts";

const declared = (route: `${"GET" | "POST" | "PATCH" | "DELETE"} /${string}`) =>
  endpoint(
    route,
    { tag: "System", summary: "x", caller: "open", place: "none", answers: { 200: Type.Unknown() } },
    () => null,
  );
const endpoints = [
  declared("GET /api/files/:bucket/:key+"),
  declared("DELETE /api/files/:bucket/:key+"),
  declared("PATCH /api/files/:bucket/:key+/metadata"),
  declared("GET /api/files/:bucket"),
  declared("POST /api/files/:bucket/upload"),
  declared("GET /api/files/:bucket/uploads/:id/parts"),
];
const [group] = groupWide(endpoints);
if (group === undefined) throw new Error("no group");

test("[HT122] the end of a wide path selects the endpoint", () => {
  expect(groupWide(endpoints)).toHaveLength(1);
  expect(endpoints.map(isWide)).toEqual([true, true, true, false, false, false]);
  const at = (rest: string) => {
    const { endpoints = new Map(), params = {} } = pathAt(group, rest) ?? {};
    return [...endpoints.keys()].map((method) => [method, ...Object.values(params)].join(" "));
  };
  expect(at("a/b.txt")).toEqual(["GET a/b.txt", "DELETE a/b.txt"]);
  expect(at("a/b.txt/metadata")).toEqual(["PATCH a/b.txt"]);
  expect(at("metadata")).toEqual(["GET metadata", "DELETE metadata"]);
  expect(at("")).toEqual(["GET"]);
});

test("[HT122] a fixed path shares its methods with a value of its name, or is a path of its own", () => {
  const at = (rest: string) =>
    [...(pathAt(group, rest)?.endpoints.values() ?? [])].map(({ route }) => route.replace("/api/files/", ""));
  expect(at("upload")).toEqual(["GET :bucket/:key+", "DELETE :bucket/:key+", "POST :bucket/upload"]);
  expect(at("uploads/1/parts")).toEqual(["GET :bucket/uploads/:id/parts"]);
  expect(pathAt(group, "uploads/1/parts")?.params).toEqual({ id: "1" });
  expect(at("uploads/1/2/parts")).toEqual(["GET :bucket/:key+", "DELETE :bucket/:key+"]);
});

test("[HT122] a wide parameter is decoded once", () => {
  const rest = (path: string) => restOfPath(`http://localhost:1${path}`, group);
  expect(rest("/api/files/b/a%2Fb%20c?x=%zz")).toBe("a/b c");
  expect(rest("/api/files/b/%2520")).toBe("%20");
  expect(rest("/api/files/b%2Fb/a/b")).toBe("a/b");
  expect(() => rest("/api/files/b/%zz")).toThrow("percent-encoding");
});

test("[HT12] wide paths are described by their parameter", () => {
  const [first, , third] = endpoints;
  if (first === undefined || third === undefined) throw new Error("no endpoint");
  expect(documentedPath(third)).toBe("/api/files/{bucket}/{key}/metadata");
  expect(operationIdOf(first)).toBe("getApiFilesByBucketByKey");
});
