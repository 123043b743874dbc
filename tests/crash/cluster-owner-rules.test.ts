/** Rules of docs/decisions/019, each taken out of a copy of the sources: the test that names it fails then. */

import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { changeSource, copiedSource, type SourceChange } from "../support/changed-source.ts";

const TEST = "src/server/cluster/owner/owner.test.ts";
const COPIED = ["src", "schema", "tests/support", "package.json", "tsconfig.json", "bunfig.toml"];
const TIMEOUT_MS = 120_000;

const [FILES, KNOWN, NO_LOG, ANSWERS, LEASE, DOORS, CODE, REVOKED] = [
  "[CLU40] the log leads to exactly the files of its owner",
  "[CLU40] a directory that the log knows goes on from there",
  "[CLU41] without PostgreSQL a write is answered within 4 s",
  "[CLU42] an answer leaves when the log has everything",
  "[CLU42] nothing is answered when the lease is over",
  "[CLU42] messages to sockets and calls to other servers",
  "[CLU43] code of the config learns of a commit",
  "[CLU45] who takes a right away",
];
const OWNER = "src/server/cluster/owner/owner.ts";
const CAPTURED = "src/server/cluster/owner/captured-files.ts";

const OFF: readonly (SourceChange & { rule: string; fails: string | undefined })[] = [
  {
    rule: "frames of a commit become rows",
    file: CAPTURED,
    from: "append(one.rows.take(frames));",
    to: "one.rows.take(frames);",
    fails: FILES,
  },
  {
    rule: "so do those of d1, which other processes commit",
    file: "src/server/db/files/kept-file.ts",
    from: ": new CapturedFile(this.#capture, parts);",
    to: ": null;",
    fails: FILES,
  },
  {
    rule: "and the creation of a file",
    file: CAPTURED,
    from: "append([createdRow({ path, id, number: before.number }, created)]);",
    to: "{}",
    fails: FILES,
  },
  {
    rule: "a commit without a number of its own goes with the next",
    file: "src/server/cluster/entries/commit-rows.ts",
    from: "return this.#part(pages);",
    to: "return null;",
    fails: FILES,
  },
  {
    rule: "a file that is not what the log has of it is not opened",
    file: CAPTURED,
    from: "!isSame(logged, { id, ...before })",
    to: "false",
    fails: KNOWN,
  },
  {
    rule: "a write waits for the log, not for the local sync",
    file: "src/server/db/files/database-file.ts",
    from: "noting(opened.sync, dependencies.capture?.durable)",
    to: "noting(opened.sync)",
    fails: NO_LOG,
  },
  {
    rule: "nobody waits for longer than 3 s",
    file: "src/server/cluster/owner/limits.ts",
    from: "WAIT_MAX_MS = 3 * SECOND_MS",
    to: "WAIT_MAX_MS = 6 * SECOND_MS",
    fails: NO_LOG,
  },
  {
    rule: "while the log is not there, writes are refused before they are committed",
    file: "src/server/db/writer/writer.ts",
    from: "this.#slowness = refused;",
    to: "",
    fails: NO_LOG,
  },
  {
    rule: "an answer waits at the gate",
    file: "src/server/http/listening/leaving.ts",
    from: "isSilent(response) ? null : isDurable ? gate.lease() : gate.wait()",
    to: "null",
    fails: ANSWERS,
  },
  {
    rule: "an answer of a route waits, whatever its status is",
    file: "src/server/http/listening/leaving.ts",
    from: "isSilent(response) ? null",
    to: "isSilent(response) || response.status === 503 ? null",
    fails: "[CLU42] an answer of a route waits, whatever its status is",
  },
  {
    rule: "the gate looks at the lease",
    file: OWNER,
    from: "if (member.mayAnswer(position)) return null;",
    to: "if (position <= (member.announcement?.position ?? -1)) return null;",
    fails: LEASE,
  },
  {
    rule: "messages to sockets wait",
    file: "src/server/sockets/socket-line.ts",
    from: "if (gate === null) {",
    to: "if (gate !== undefined) {",
    fails: DOORS,
  },
  {
    rule: "calls to other servers wait",
    file: "src/server/http/outgoing/leaving.ts",
    from: "for (const gate of gates) await gate.wait();",
    to: "",
    fails: DOORS,
  },
  {
    rule: "who takes a right away is answered when no node uses it",
    file: "src/server/http/listening/leaving.ts",
    from: "(answer.hasRevoked ? gate.everywhere() : undefined)",
    to: "undefined",
    fails: REVOKED,
  },
  {
    rule: "by what PostgreSQL has said since",
    file: OWNER,
    from: "member.isEverywhere(position, sinceMs)",
    to: "true",
    fails: REVOKED,
  },
  {
    rule: "what app gives waits",
    file: "src/server/platform/areas.ts",
    from: "base.gate === null ?",
    to: "base.gate !== undefined ?",
    fails: CODE,
  },
  {
    rule: "a job waits before it begins",
    file: "src/server/jobs/queue/dispatcher.ts",
    from: "chain(behind(gate, this.#dataOf(job.data)), ",
    to: "chain(gate === undefined ? behind(gate, this.#dataOf(job.data)) : this.#dataOf(job.data), ",
    fails: CODE,
  },
];

let directory = "";
beforeAll(() => {
  directory = copiedSource(COPIED);
});

/** Runs a test of the copy. Returns its output. */
async function run(name: string): Promise<string> {
  const pattern = name.replace(/[[\]]/g, "\\$&");
  const child = Bun.spawn([process.execPath, "test", "--timeout", "60000", TEST, "-t", pattern], {
    cwd: directory,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  await child.exited;
  return out + errors;
}

describe("[CLU44] without this rule of an owner its test fails", () => {
  for (const { rule, fails, ...change } of OFF) {
    test(
      rule,
      async () => {
        const path = join(directory, change.file);
        const original = readFileSync(path);
        changeSource(directory, [change]);
        try {
          expect(await run(fails ?? "")).toContain(`(fail) ${fails}`);
        } finally {
          writeFileSync(path, original);
        }
      },
      TIMEOUT_MS,
    );
  }
});
