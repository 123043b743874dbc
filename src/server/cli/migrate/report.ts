import type { Comparison } from "./load/comparison.ts";
import type { Remark } from "./remarks.ts";

/** Returns the section that compares what is there with what is here. */
export function compared(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(({ name, there, here }) => {
    const isSame = there.count === here.count && there.hash === here.hash;
    const hash = isSame
      ? here.hash.slice(0, 16)
      : `**${there.hash.slice(0, 16)} there, ${here.hash.slice(0, 16)} here**`;
    return `| ${name} | ${there.count} | ${here.count} | ${hash} |`;
  });
  const head = ["| | there | here | SHA-256 of all |", "|---|---|---|---|"];
  return ["## Counts and hashes", "", "Every record and file was read back and compared.", "", ...head, ...rows].join(
    "\n",
  );
}

/** Returns a section of remarks; none without any. */
export const section = (title: string, remarks: readonly Remark[]): string[] =>
  remarks.length === 0
    ? []
    : [`## ${title}\n\n${remarks.map(({ place, text }) => `- **${place}**: ${text}`).join("\n")}`];

/** Returns a section of names; none without any. */
export const listed = (title: string, names: readonly string[]): string[] =>
  names.length === 0 ? [] : [`## ${title}\n\n${names.map((name) => `- ${name}`).join("\n")}`];

/** Whether everything that was moved is as it was. */
export const isSame = (comparisons: readonly Comparison[]): boolean =>
  comparisons.every(({ there, here }) => there.count === here.count && there.hash === here.hash);
