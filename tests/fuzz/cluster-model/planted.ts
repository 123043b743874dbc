import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { temporaryDirectory } from "../../support/platform.ts";
import type { NodeType } from "./simulated-host.ts";
import type { Condition } from "./simulated-postgres.ts";

/** Starts of the search, like those of RULES, for conditions that are rarely needed. */
export const STARTS: Readonly<Partial<Record<Condition, number>>> = {
  "take: counter of the owner": 1_700,
  "take: the owner's row is changed too": 1_800,
  "renew: counter grows": 6_300,
  "renew: acts as its row says": 1_800,
};

const ROOT = resolve(import.meta.dir, "../../..");
const PROTOCOL = "src/server/cluster/protocol";

/** A rule of the protocol, and the change of its source that takes it out. */
export interface Rule {
  name: string;
  file: string;
  from: string;
  to: string;
  /** History behind which the first one that is wrong was found, so that the search begins there; 0 by default. */
  start?: number;
}

/** Rules of the nodes. The program has no switch for them: each is taken out of a copy of the sources. */
export const RULES: readonly Rule[] = [
  {
    name: "a notice makes an outcome unknown",
    file: "statements.ts",
    from: `if (answer.hasNotice) return "unknown";`,
    to: "",
  },
  {
    name: "so does another setting of the standbys",
    file: "statements.ts",
    from: "before.standbyNames !== after.standbyNames || before.loadedAt !== after.loadedAt",
    to: "false",
  },
  {
    name: "so does a setting that was changed and changed back",
    file: "statements.ts",
    from: "|| before.loadedAt !== after.loadedAt",
    to: "",
  },
  {
    name: "an entry that was found is acknowledged behind a barrier",
    file: "appender.ts",
    from: `this.#send("barrier", { kind: "barrier", node: this.#node });`,
    to: `{
      const settings = { standbyNames: "", loadedAt: "" };
      this.#appended({ group, entries: [], nodes: [], isDone: true, hasNotice: false, before: settings, after: settings });
    }`,
  },
  {
    name: "an append of unknown outcome is sent again",
    file: "appender.ts",
    from: "this.#isOpen = false;\n    this.#underway = null;",
    to: "this.#isOpen = false;\n    if (this.#underway !== null) this.#entries.shift();\n    this.#underway = null;",
  },
  {
    name: "an entry is found by its nonce, and not by its position",
    file: "appender.ts",
    from: "found.nonce === entry.nonce",
    to: "true",
  },
  {
    name: "what is acknowledged is noted on the disk before",
    file: "appender.ts",
    from: "this.#ports.note(this.#end);",
    to: "",
  },
  {
    name: "a follower shows nothing before a barrier",
    file: "node.ts",
    from: `if (comparison === "agrees" && (entries.at(-1)?.position ?? group.position) < group.position) this.#readAtMs = 0;`,
    to: "this.#show(this.#log.showAll());",
  },
  {
    name: "a barrier counts on the connection of the read only",
    file: "node.ts",
    from: 'this.#log.forget();\n    if (this.#role.kind === "comparing") this.#role = { kind: "comparing", isRead: false };',
    to: "",
  },
  {
    name: "a file that comes back is compared with the log",
    file: "node.ts",
    from: "found !== nonce",
    to: "answer.entries.length === 0",
  },
  {
    name: "and believed behind a barrier",
    file: "node.ts",
    from: `this.#role = { kind: "comparing", isRead: true };`,
    to: `this.#role = { kind: "joining" };`,
  },
  {
    name: "what is known to be acknowledged is compared with what is read",
    file: "node.ts",
    from: "atNoted !== undefined && atNoted.nonce !== this.#noted.nonce",
    to: "false",
  },
  {
    name: "a log that is shorter than what is known raises an alarm",
    file: "node.ts",
    from: "this.#compareEnd(group, now);",
    to: "",
  },
  {
    name: "an announcement names the content",
    file: "followed.ts",
    from: "entry.position === position && entry.nonce === nonce",
    to: "entry.position === position",
    start: 17000,
  },
  {
    name: "an answer waits for the acknowledgement",
    file: "node.ts",
    from: "&& role.appender.acknowledged.position >= position",
    to: "",
  },
  {
    name: "every answer looks at the lease",
    file: "node.ts",
    from: "if (!this.#lease.isTrusted(now)) return false;",
    to: "",
  },
  {
    name: "a lease is trusted by the wall clock",
    file: "leases.ts",
    from: " && wallMs >= 0 && wallMs < TRUST_MS",
    to: "",
  },
  { name: "and by the monotonic clock", file: "leases.ts", from: "monotonicMs < TRUST_MS && ", to: "", start: 1480 },
  { name: "and not when the wall clock was set back", file: "leases.ts", from: "wallMs >= 0 && ", to: "" },
  {
    name: "trust counts from the begin of a renewal",
    file: "node.ts",
    from: "this.#lease.renewed(began);",
    to: "this.#lease.renewed(now);",
    start: 7300,
  },
  {
    name: "a renewal of unknown outcome is none",
    file: "node.ts",
    from: `else if (kind === "renew" && isProof)`,
    to: `else if (kind === "renew" && answer.isDone)`,
    start: 17400,
  },
  {
    name: "a takeover of unknown outcome is none",
    file: "node.ts",
    from: `else if (kind === "take" && isProof)`,
    to: `else if (kind === "take" && answer.isDone)`,
    start: 28500,
  },
  {
    name: "a lease is over when its counter has stood still",
    file: "vacancy.ts",
    from: "if (!watch.isOver(row)) return null;",
    to: "",
  },
  {
    name: "a taker acts when it has applied everything",
    file: "node.ts",
    from: " || this.#log.shown.position < role.position",
    to: "",
  },
  {
    name: "an older PostgreSQL is not believed",
    file: "channel.ts",
    from: "if (server.timeline < this.timeline) return false;",
    to: "",
    start: 1640,
  },
  {
    name: "whoever gives up the group acts no more before others may learn of it",
    file: "node.ts",
    from: "role.appender.isIdle) this.#demote();",
    to: `role.appender.isIdle) {
      const place = { applied: this.#noted.position, known: this.#noted.position };
      return { kind: "renew", node: this.#node, incarnation: this.#incarnation, counter: ++this.#counter, ...place, acting: null };
    }`,
  },
  {
    name: "a file ahead of the log is set aside at the end of ownership",
    file: "node.ts",
    from: "const isClean = appender.tail === appender.acknowledged.position;",
    to: "const isClean = true;",
  },
  {
    name: "a follower compares what it has shown with the log",
    file: "followed.ts",
    from: `if (entry.position !== this.shown.position || entry.nonce !== this.shown.nonce) return "differs";`,
    to: "",
    start: 2670,
  },
  {
    name: "after a gap in its lease a node reaches what others may have answered",
    file: "node.ts",
    from: "      [this.#mustReach, this.#readAtMs] = [null, 0];\n    }\n    this.#lease.renewed",
    to: "    }\n    this.#lease.renewed",
  },
  {
    name: "a node that has not applied what is a lease old renews no more",
    file: "node.ts",
    from: `role.kind === "owning" || this.#isCurrent(now)`,
    to: "true",
  },
  {
    name: "a revocation is answered when every node has applied it",
    file: "node.ts",
    from: "row.applied >= position || this.#watch.isOver(row)",
    to: "true",
  },
  {
    name: "by what PostgreSQL has said of them since",
    file: "node.ts",
    from: "if (this.#nodes.asOfMs <= sinceMs) return false;",
    to: "",
  },
  {
    name: "a node of which PostgreSQL knows nothing joins again",
    file: "node.ts",
    from: "this.#checkPlace(answer.nodes);",
    to: "",
    start: 5600,
  },
];

/** Returns the node's type from a copy of the sources without a rule. Errors: a text is not there once. */
export async function nodeWithout({ file, from, to }: Rule): Promise<NodeType> {
  const directory = temporaryDirectory();
  for (const folder of [PROTOCOL, "src/kernel/time"])
    cpSync(join(ROOT, folder), join(directory, folder), { recursive: true });
  const path = join(directory, PROTOCOL, file);
  const parts = readFileSync(path, "utf8").split(from);
  if (parts.length !== 2) throw new Error(`${file} has the text ${parts.length - 1} times: ${from}`);
  writeFileSync(path, parts.join(to));
  const changed: { ClusterNode: NodeType } = await import(join(directory, PROTOCOL, "node.ts"));
  return changed.ClusterNode;
}
