import type { Comparison } from "../load/comparison.ts";
import type { Remark, Remarks } from "../remarks.ts";
import { compared, listed, section } from "../report.ts";
import type { MovePlan } from "./plan.ts";
import type { PbSource } from "./source.ts";

/** Returns the text of `report.md`. `comparisons`: null for a plan. */
export function reportText(parts: {
  source: PbSource;
  plan: MovePlan;
  comparisons: readonly Comparison[] | null;
  remarks: Remarks;
}): string {
  const { source, plan, comparisons, remarks } = parts;
  const sections = [
    "# Moved from PocketBase",
    comparisons === null ? planned(plan) : compared(comparisons),
    ...section("Not moved", remarks.notMoved),
    ...section("What to look at", [...remarks.toLookAt, ...ALWAYS]),
    ...listed(
      "Superusers, who have no account here: use the service key (`platform keys`), or `platform admin-link`",
      source.superusers,
    ),
    ...listed("Hooks in `pb_hooks`, to be written again as hooks, routes or triggers of the config", source.hooks),
  ];
  return `${sections.join("\n\n")}\n`;
}

/** Remarks of every move. */
const ALWAYS: readonly Remark[] = [
  {
    place: "accounts",
    text: "users may delete their own account, by `DELETE /api/auth/me`; there the deleteRule decides",
  },
  { place: "references", text: "may name a record that the caller cannot read, as there (`mayBeHidden`)" },
];

function planned({ tables, views }: MovePlan): string {
  const rows = tables.map(({ name, rows: count }) => `| ${name} | ${count} |`);
  const lines = ["## What there is", "", "| table | records |", "|---|---|", ...rows];
  return [...lines, ...views.map(({ name }) => `| ${name} | a view |`)].join("\n");
}
