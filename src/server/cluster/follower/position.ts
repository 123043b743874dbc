import type { CopiedContent } from "../entries/content.ts";
import {
  type CommitContent,
  type CreatedContent,
  decodeContent,
  type PartContent,
  type RemovedContent,
} from "../entries/content.ts";
import type { LogEntry } from "../protocol/statements.ts";

/** Step of one file within a position: commits that follow one another, or something else. */
export type FileStep =
  | { kind: "commits"; commits: readonly (CommitContent | PartContent)[] }
  | { kind: "created"; number: number; content: CreatedContent }
  | { kind: "removed"; content: RemovedContent }
  | { kind: "copied"; content: CopiedContent };

/** Steps of one file within a position, in their order. */
export interface FileSteps {
  file: string;
  steps: readonly FileStep[];
}

type Numbered = { number: number; content: ReturnType<typeof decodeContent> };

/** Order of contents with the same number: a part and a removal follow the commit of their number. */
const RANKS = { created: 0, copied: 0, commit: 1, part: 2, removed: 3 } as const;

const indexOf = ({ content }: Numbered): number => (content.kind === "part" ? content.index : 0);

/**
 * Reads a position: the steps of each file, whatever the order of its rows. Files that are removed come first, because another may get
 * their path; one that is made and removed in it has no step. Errors: those of `decodeContent`.
 */
export function stepsOf({ body }: LogEntry): FileSteps[] {
  const byFile = new Map<string, Numbered[]>();
  for (const { file, number, content } of body) {
    const rows = byFile.get(file) ?? [];
    rows.push({ number, content: decodeContent(content) });
    byFile.set(file, rows);
  }
  const files: FileSteps[] = [];
  for (const [file, rows] of byFile) {
    rows.sort(
      (one, other) =>
        one.number - other.number ||
        RANKS[one.content.kind] - RANKS[other.content.kind] ||
        indexOf(one) - indexOf(other),
    );
    const isPassing = rows[0]?.content.kind === "created" && rows.at(-1)?.content.kind === "removed";
    if (!isPassing) files.push({ file, steps: joined(rows) });
  }
  const isRemoved = ({ steps }: FileSteps): number => (steps.at(-1)?.kind === "removed" ? 0 : 1);
  return files.sort((one, other) => isRemoved(one) - isRemoved(other));
}

function joined(rows: readonly Numbered[]): FileStep[] {
  const steps: FileStep[] = [];
  let commits: (CommitContent | PartContent)[] | null = null;
  for (const { number, content } of rows) {
    if (content.kind === "commit" || content.kind === "part") {
      if (commits === null) {
        commits = [];
        steps.push({ kind: "commits", commits });
      }
      commits.push(content);
      continue;
    }
    commits = null;
    if (content.kind === "created") steps.push({ kind: "created", number, content });
    else if (content.kind === "removed") steps.push({ kind: "removed", content });
    else steps.push({ kind: "copied", content });
  }
  return steps;
}

/** Returns the size of what an entry holds. */
export const bytesOf = ({ body }: LogEntry): number => body.reduce((sum, { content }) => sum + content.byteLength, 0);
