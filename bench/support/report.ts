import { cpus, platform, release, totalmem } from "node:os";
import type { Result, Section } from "./section.ts";

const HEADER = `# Measurements

Written by \`npm run bench\` (all of it, or \`npm run bench -- tables\` for one part). Each part states the machine that it was measured on:
numbers of different machines are not comparable, the ratios to a floor measured in the same run are.
`;

const GIB = 1024 ** 3;
/** Maximum load of all processors before a measurement; above it, other processes distort the numbers. */
const QUIET_BUSY_MAX = 0.1;
const SAMPLE_MS = 2_000;

function processorTimes(): { busyMs: number; allMs: number } {
  const times = cpus().map((processor) => processor.times);
  const idleMs = times.reduce((sum, { idle }) => sum + idle, 0);
  const allMs = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { busyMs: allMs - idleMs, allMs };
}

/** Returns a note if the machine is busy with something else; else an empty text. Takes two seconds. */
export async function busyNote(): Promise<string> {
  const before = processorTimes();
  await Bun.sleep(SAMPLE_MS);
  const after = processorTimes();
  const share = (after.busyMs - before.busyMs) / (after.allMs - before.allMs);
  if (share <= QUIET_BUSY_MAX) return "";
  return ` Other programs took ${Math.round(share * 100)} % of the processors: do not trust these numbers.`;
}

/** Describes the machine: `2 × Some Processor, 24 GiB, linux 6.1.0, Bun 1.4.5`. */
function machine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() ?? "processor";
  const memory = Math.round(totalmem() / GIB);
  return `${processors.length} × ${model}, ${memory} GiB, ${platform()} ${release()}, Bun ${Bun.version}`;
}

function row(result: Result): string {
  const ratio = result.ratio?.toFixed(2) ?? "";
  const met = result.isMet === null ? "" : result.isMet ? " ✓" : " ✗";
  const cells = [result.name, result.measured, result.p50 ?? "", result.p99 ?? "", result.floor ?? "", ratio];
  return `| ${[...cells, `${result.target ?? ""}${met}`].join(" | ")} |`;
}

export function sectionText(
  section: Pick<Section, "title" | "about">,
  results: readonly Result[],
  measured: { day: string; busyNote: string },
): string {
  return [
    `## ${section.title}`,
    "",
    section.about,
    "",
    `Measured ${measured.day} on ${machine()}.${measured.busyNote}`,
    "",
    "| what | measured | p50 | p99 | floor | ratio | target |",
    "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ...results.map(row),
    "",
  ].join("\n");
}

/** Heading of the handwritten section, which is always the last. */
const COMMENTARY = "## What falls short\n";

/** Inserts a section into the report, or replaces its last measurement; the others stay unchanged. */
export function withSection(report: string, title: string, text: string): string {
  const [, ...parts] = report.split(/^(?=## )/m);
  const sections = parts.map((part) => part.trimEnd());
  const place = sections.findIndex((part) => part.startsWith(`## ${title}\n`));
  if (place === -1) sections.push(text.trimEnd());
  else sections[place] = text.trimEnd();
  sections.sort((a, b) => Number(a.startsWith(COMMENTARY)) - Number(b.startsWith(COMMENTARY)));
  return `${[HEADER.trimEnd(), ...sections].join("\n\n")}\n`;
}
