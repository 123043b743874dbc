import type { Remarks } from "../remarks.ts";
import { compared, section } from "../report.ts";
import type { Again, Left } from "./again.ts";

/** Ids of one table that a section names, at most. */
const NAMED_MAX = 1000;

const REASONS: Readonly<Record<Left["because"], string>> = {
  made: "made here",
  changed: "changed here",
  deleted: "deleted here",
};

/** Returns the report of a second move. `config`: what a first move would write now. */
export function againReport({
  title,
  again,
  config,
  remarks,
}: {
  title: string;
  again: Again;
  config: string;
  remarks: Remarks;
}): string {
  const rows = [...again.counts]
    .filter(([, { inserted, updated, deleted }]) => inserted + updated + deleted > 0)
    .map(([name, { inserted, updated, deleted }]) => `| ${name} | ${inserted} | ${updated} | ${deleted} |`);
  const taken = ["## Taken over", "", "| | new | changed | deleted |", "|---|---|---|---|", ...rows];
  const sections = [
    title,
    (rows.length === 0 ? ["## Taken over", "", "Nothing has changed there."] : taken).join("\n"),
    compared(again.comparisons),
    ...leftSection(again.left),
    ...configSection(again.formerConfig, config),
    ...section("Not moved", remarks.notMoved),
    ...section("What to look at", remarks.toLookAt),
  ];
  return `${sections.join("\n\n")}\n`;
}

function leftSection(left: readonly Left[]): string[] {
  if (left.length === 0) return [];
  const groups = new Map<string, string[]>();
  for (const { table, id, because, isNewThere } of left) {
    const why = table === "passwords" ? "another one here, set or replaced at a sign-in" : REASONS[because];
    const place = `**${table}**, ${why}${isNewThere ? ", and other there than it was" : ""}`;
    groups.set(place, [...(groups.get(place) ?? []), id]);
  }
  const lines = [...groups].map(([place, ids]) => {
    const more = ids.length > NAMED_MAX ? `, and ${ids.length - NAMED_MAX} more` : "";
    return `- ${place}: ${ids.slice(0, NAMED_MAX).join(", ")}${more}`;
  });
  return [`## Left as it is here\n\n${lines.join("\n")}`];
}

/** Shows the lines of the config that a first move would write in another way now. */
function configSection(former: string, config: string): string[] {
  if (former === config) return [];
  const [before, after] = [former.split("\n"), config.split("\n")];
  const gone = without(before, after).map((line) => `-${line}`);
  const added = without(after, before).map((line) => `+${line}`);
  const text = "platform.config.ts is never written again. These lines of it would be others now:";
  return [`## Config\n\n${text}\n\n\`\`\`diff\n${[...gone, ...added].join("\n")}\n\`\`\``];
}

/** Returns the lines of one text that another one does not have as often. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = counts.get(line) ?? 0;
    counts.set(line, count - 1);
    return count <= 0;
  });
}
