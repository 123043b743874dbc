import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ownChild } from "../../../../tests/support/children.ts";
import type { Line } from "../../../../tests/support/cluster/node-process.ts";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { temporaryDirectory } from "../../../../tests/support/platform.ts";
import { until } from "../../../../tests/support/until.ts";
import { askLog } from "./log-channel.ts";
import { makeSchema } from "./schema.ts";

const PROGRAM = resolve(import.meta.dir, "../../../../tests/support/cluster/node-process.ts");
/** Clocks of the nodes run so many times faster: a lease takes 2.5 s. */
const SPEED = 4;
const FAILOVERS = 6;

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await TestPostgres.start();
});
afterAll(() => postgres.stop());

/** A node in a process of its own. */
class NodeProcess {
  readonly name: string;
  readonly #journal: string;
  #child: Bun.Subprocess;

  constructor(name: string, directory: string) {
    this.name = name;
    this.#journal = join(directory, name);
    writeFileSync(this.#journal, "");
    this.#child = this.#start();
  }

  #start(): Bun.Subprocess {
    const command = [process.execPath, PROGRAM, postgres.url, this.name, this.#journal, String(SPEED)];
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
    ownChild(child);
    return child;
  }

  lines(): Line[] {
    const texts = readFileSync(this.#journal, "utf8").split("\n").slice(0, -1);
    // Written by the program above.
    return texts.map((text) => JSON.parse(text) as Line);
  }

  get isOwner(): boolean {
    const last = this.lines().findLast((line) => line.kind === "owns");
    return last?.kind === "owns" && last.isOwner;
  }

  get answered(): number {
    return this.lines().filter(({ kind }) => kind === "answered").length;
  }

  stop(): void {
    this.#child.kill("SIGSTOP");
  }

  goOn(): void {
    this.#child.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  restart(): void {
    writeFileSync(this.#journal, `${JSON.stringify({ kind: "owns", isOwner: false } satisfies Line)}\n`, { flag: "a" });
    this.#child = this.#start();
  }
}

test(`[CLU24] owners are stopped and killed ${FAILOVERS} times: others go on, and nothing that was answered is lost`, async () => {
  const connection = await postgres.connect();
  await makeSchema(connection, 1_000_000);
  const directory = temporaryDirectory();
  const nodes = ["a", "b", "c"].map((name) => new NodeProcess(name, directory));
  const ownerBut = async (former: NodeProcess | null): Promise<NodeProcess> => {
    let found: NodeProcess | undefined;
    await until("somebody else is the owner, and has answered", () => {
      found = nodes.find((node) => node !== former && node.isOwner);
      return found !== undefined;
    });
    if (found === undefined) throw new Error("there is no owner");
    const { answered } = found;
    await until("the owner answers writes", () => (found?.answered ?? 0) > answered + 20);
    return found;
  };
  let owner = await ownerBut(null);
  for (let failover = 0; failover < FAILOVERS; failover++) {
    const former = owner;
    if (failover % 2 === 0) {
      former.stop();
      owner = await ownerBut(former);
      former.goOn();
      await until("the former owner has noticed", () => !former.isOwner);
    } else {
      await former.kill();
      owner = await ownerBut(former);
      former.restart();
    }
  }
  const { group } = await askLog(connection, { kind: "look", position: 0 });
  await until("every node shows all of that", () =>
    nodes.every((node) => {
      const noted = node.lines().findLast((line) => line.kind === "noted");
      return noted?.kind === "noted" && noted.place.position >= group.position;
    }),
  );
  await Promise.all(nodes.map((node) => node.kill()));

  const { entries } = await askLog(connection, { kind: "read", from: 0, limit: 10_000_000 });
  connection.close();
  const positions = new Map(
    entries.flatMap(({ position, body }) => body.map(({ number }) => [number, position] as const)),
  );
  expect(positions.size).toBe(entries.reduce((sum, { body }) => sum + body.length, 0));
  const answers: { position: number; atMs: number }[] = [];
  for (const node of nodes) {
    const lines = node.lines();
    expect(lines.filter(({ kind }) => kind === "alarm")).toEqual([]);
    for (const line of lines) {
      if (line.kind === "answered") expect(positions.get(line.number)).toBe(line.position);
      if (line.kind === "noted" && line.place.position > 0)
        expect(entries[line.place.position - 1]?.nonce).toBe(line.place.nonce);
      if (line.kind === "applied")
        for (const place of line.places) expect(entries[place.position - 1]?.nonce).toBe(place.nonce);
      if (line.kind === "answered") answers.push({ ...line });
    }
  }
  expect(answers.length).toBeGreaterThan(20 * FAILOVERS);
  // In the order of time no answer goes back: one owner followed another.
  const inOrder = answers.toSorted((one, other) => one.atMs - other.atMs || one.position - other.position);
  expect(inOrder.map(({ position }) => position)).toEqual(
    answers.map(({ position }) => position).toSorted((a, b) => a - b),
  );
}, 240_000);
