import { expect, test } from "bun:test";
import { measureClient } from "../../scripts/client/size.ts";

test("[CP10] a page loads a small client", async () => {
  const { sizes } = await measureClient();
  expect(sizes.filter(({ bytes, maxBytes }) => bytes === 0 || bytes > maxBytes)).toEqual([]);
});
