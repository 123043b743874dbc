import { expect, test } from "bun:test";
import { withSection } from "./report.ts";
import { median } from "./statistics.ts";

test("a measured part takes the place of its last measurement and leaves the others", () => {
  const first = withSection("", "Tables", "## Tables\n\nold\n");
  const both = withSection(first, "Rooms", "## Rooms\n\nrooms\n");
  const again = withSection(both, "Tables", "## Tables\n\nnew\n");
  expect(again.match(/^## .*$/gm)).toEqual(["## Tables", "## Rooms"]);
  expect(again).toContain("## Tables\n\nnew\n\n## Rooms\n\nrooms\n");
  expect(again.startsWith("# Measurements\n")).toBe(true);
  expect(withSection(again, "Tables", "## Tables\n\nnew\n")).toBe(again);
});

test("the median is a value that was measured", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 3, 2])).toBe(2);
});
