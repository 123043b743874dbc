import { expect, test } from "bun:test";
import { parseChannel } from "./channel.ts";

const tables = {
  isInstanceId: (id: string) => id !== "" && !id.includes(" "),
  isDynamic: (namespace: string) => ({ shared: false, clubs: true })[namespace] ?? null,
  find: (namespace: string, table: string) =>
    table === "posts" && namespace in { shared: 1, clubs: 1 } ? { isDynamic: namespace === "clubs" } : null,
};

test("[RT13] the parts of a channel's name", () => {
  const address = { namespace: "shared", instanceId: null, table: "posts" };
  expect(parseChannel("realtime:shared:posts", tables)).toMatchObject({ kind: "table", address, docId: null });
  expect(parseChannel("realtime:shared:posts:a:b", tables)).toMatchObject({ kind: "table", address, docId: "a:b" });
  expect(parseChannel("realtime:clubs:posts:posts", tables)).toMatchObject({
    kind: "table",
    address: { namespace: "clubs", instanceId: "posts", table: "posts" },
    docId: null,
  });
  expect(parseChannel("presence:a:b", tables)).toEqual({ kind: "presence", name: "presence:a:b" });
  expect(parseChannel("broadcast:\ud800", tables)).toBeNull();
  expect(parseChannel("realtime:clubs:posts", tables)).toBeNull();
  expect(parseChannel("realtime:clubs:x:posts:id", tables)).toBeNull();
  expect(parseChannel("realtime:clubs:a b:posts", tables)).toBeNull();
  expect(parseChannel("realtime:clubs::posts", tables)).toBeNull();
});
