import { expect, test } from "bun:test";

test("[TC92] [TC100] feature-types.ts, which tests the types of rooms and functions, is checked by tsc", async () => {
  const { include } = await Bun.file(new URL("tsconfig.json", import.meta.url)).json();
  expect(include).toContain(".");
  const text = await Bun.file(new URL("feature-types.ts", import.meta.url)).text();
  expect(text).toContain("[TC92] [TC100] [TC110]");
});
