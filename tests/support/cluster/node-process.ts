import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { LogChannel } from "../../../src/server/cluster/postgres/log-channel.ts";
import { ClusterNode } from "../../../src/server/cluster/protocol/node.ts";
import type { ChannelName, KeptOnDisk } from "../../../src/server/cluster/protocol/node-ports.ts";
import type { Instant, Place } from "../../../src/server/cluster/protocol/statements.ts";

// A process with one node on a real PostgreSQL, and a journal in place of files: `node-process.ts URL NAME JOURNAL SPEED`. It commits
// whenever it is the owner. Each line of the journal is what it did: answered a write, showed a place, became the owner.

const [url = "", name = "", path = "", speed = "1"] = process.argv.slice(2);
const START: Place = { position: 0, nonce: "" };
const TICK_MS = 20;
const COMMIT_MS = 5;

/** Lines of the journal. */
export type Line =
  | { kind: "noted"; history: number; place: Place }
  | { kind: "applied"; places: Place[] }
  | { kind: "set aside" }
  | { kind: "answered"; number: number; position: number; atMs: number }
  | { kind: "read"; position: number; atMs: number }
  | { kind: "owns"; isOwner: boolean }
  | { kind: "alarm" };

const incarnation = `${name}-${crypto.randomUUID()}`;
const now = (): Instant => ({ monotonicMs: performance.now() * Number(speed), wallMs: Date.now() * Number(speed) });
const journal = openSync(path, "a");
const write = (line: Line): void => void writeSync(journal, `${JSON.stringify(line)}\n`);

/** Reads what the process before has left. */
function disk(): KeptOnDisk {
  const left: KeptOnDisk = { history: 0, noted: START, file: START };
  for (const text of readFileSync(path, "utf8").split("\n")) {
    if (text === "") continue;
    // Written by this program.
    const line = JSON.parse(text) as Line;
    if (line.kind === "noted") [left.history, left.noted, left.file] = [line.history, line.place, line.place];
    if (line.kind === "applied") left.file = line.places.at(-1) ?? left.file;
    if (line.kind === "set aside") left.file = START;
  }
  return left;
}

const channels: Partial<Record<ChannelName, LogChannel>> = {};
const waiting: { number: number; position: number }[] = [];
const ports = (channel: ChannelName) => ({
  send: (statement: Parameters<LogChannel["send"]>[0]) => channels[channel]?.send(statement),
  reopen: () => channels[channel]?.reopen(),
});
const node = new ClusterNode(
  { node: name, incarnation, durability: "single", server: null, disk: disk() },
  {
    appends: ports("appends"),
    leases: ports("leases"),
    nonce: () => crypto.randomUUID(),
    note: (history, place) => {
      write({ kind: "noted", history, place });
      fsyncSync(journal);
    },
    apply: (entries) => write({ kind: "applied", places: entries.map(({ position, nonce }) => ({ position, nonce })) }),
    setAside: () => write({ kind: "set aside" }),
    rebase: () => write({ kind: "set aside" }),
    hasRoom: () => true,
    acknowledged() {},
    owns: (isOwner) => {
      if (!isOwner) waiting.length = 0;
      write({ kind: "owns", isOwner });
    },
    alarm: () => write({ kind: "alarm" }),
  },
);

for (const channel of ["appends", "leases"] as const) {
  channels[channel] = new LogChannel({
    url,
    incarnation,
    nonce: () => crypto.randomUUID(),
    after: (delayMs, run) => void setTimeout(run, delayMs / Number(speed)),
    opened: (server) => node.opened(channel, server, now()),
    closed: () => node.closed(channel),
    answered: (answer) => {
      node.answered(channel, answer, now());
      answerWaiting();
    },
    failed() {},
  });
  channels[channel]?.start();
}

/** Answers writes that may leave now. */
function answerWaiting(): void {
  while (waiting[0] !== undefined && node.mayAnswer(waiting[0].position, now())) {
    const answered = waiting.shift();
    if (answered !== undefined) write({ kind: "answered", ...answered, atMs: Date.now() });
  }
}

setInterval(() => node.tick(now()), TICK_MS);
setInterval(() => {
  const number = Number(`${process.pid}${Math.floor(performance.now() * 1_000)}`);
  const position = node.commit({ file: "system", number, content: new Uint8Array(10) });
  if (position !== null) waiting.push({ number, position });
  else if (node.mayAnswer(node.position, now())) write({ kind: "read", position: node.position, atMs: Date.now() });
  answerWaiting();
}, COMMIT_MS);
process.on("exit", () => closeSync(journal));
