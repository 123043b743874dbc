import { expect, test } from "bun:test";
import { Type } from "typebox";
import { endpoint } from "./endpoint.ts";
import { documentedPath, operationIdOf } from "./openapi/operation.ts";
import { groupWide, isWide, membersAt, restOfPath } from "./wide-paths.ts";

const declared = (route: `GET /${string}` | `PATCH /${string}` | `DELETE /${string}`) =>
  endpoint(route, { tag: "System", summary: "x", caller: "open", answers: { 200: Type.Unknown() } }, () => null);
const endpoints = [
  declared("GET /api/files/:bucket/:key+"),
  declared("DELETE /api/files/:bucket/:key+"),
  declared("PATCH /api/files/:bucket/:key+/metadata"),
  declared("GET /api/files/:bucket"),
];
const [group] = groupWide(endpoints);
if (group === undefined) throw new Error("no group");

test("[HT122] the end of a wide path decides which endpoints are meant", () => {
  expect(groupWide(endpoints)).toHaveLength(1);
  expect(endpoints.map(isWide)).toEqual([true, true, true, false]);
  const at = (rest: string) => membersAt(group, rest).map(({ member, value }) => `${member.method} ${value}`);
  expect(at("a/b.txt")).toEqual(["GET a/b.txt", "DELETE a/b.txt"]);
  expect(at("a/b.txt/metadata")).toEqual(["PATCH a/b.txt"]);
  expect(at("metadata")).toEqual(["GET metadata", "DELETE metadata"]);
  expect(at("")).toEqual([]);
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
