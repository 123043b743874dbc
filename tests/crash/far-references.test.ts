import { expect, test } from "bun:test";
import { testPlatform } from "../support/index.ts";
import { random as seeded, testSeed } from "../support/random.ts";

/** Kills of one run. */
const ROUNDS = 5;
const SEED = testSeed(1);
const IDS = ["a", "b", "c", "d", "e"];
const BOARDS = ["one", "two", "three"];

const PEOPLE = "/api/db/shared/tables/people";
const tasks = (board: string) => `/api/db/boards/${board}/tables/tasks`;

test(`[TB915] after a SIGKILL amid creations, references and deletions no reference is left to nothing (${ROUNDS} rounds, seed ${SEED})`, async () => {
  const platform = await testPlatform({
    config: `{
      databases: {
        shared: { tables: { people: { access: { read: true, insert: true, delete: true }, schema: {} } } },
        boards: {
          instance: true,
          access: { create: true, open: true },
          tables: {
            tasks: {
              schema: {
                ownerId: { references: "shared/people", onDelete: "setNull" },
                guests: { type: "references", references: "shared/people", onDelete: "remove" },
              },
              access: { read: true, insert: true },
            },
          },
        },
      },
    }`,
  });
  const random = seeded(SEED);
  const some = <T>(from: readonly T[]): T => from[random.below(from.length)] as T;
  let referred = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let isOver = false;
    const work = async (): Promise<void> => {
      while (!isOver) {
        const id = some(IDS);
        const asked = [
          () => platform.post(PEOPLE, { id }),
          () => platform.delete(`${PEOPLE}/${id}`),
          () => platform.post(tasks(some(BOARDS)), { ownerId: id, guests: [id] }),
        ];
        // Refused: it exists already, or not; or the server is gone.
        const answer = await some(asked)().catch(() => null);
        if (answer?.status === 201 && "ownerId" in answer.body) referred += 1;
      }
    };
    const workers = Array.from({ length: 8 }, work);
    await Bun.sleep(200 + random.below(600));
    await platform.kill();
    isOver = true;
    await Promise.all(workers);
    await platform.restart();
    const people = await platform.get<{ items: { id: string }[] }>(`${PEOPLE}?limit=1000`);
    const present = new Set(people.body.items.map(({ id }) => id));
    for (const board of BOARDS) {
      const filter = encodeURIComponent(JSON.stringify([["ownerId", "!=", null]]));
      const { body } = await platform.get<{ items: { ownerId: string; guests: string[] }[] }>(
        `${tasks(board)}?limit=1000&filter=${filter}`,
      );
      for (const { ownerId, guests } of body.items) {
        expect([round, ownerId, present.has(ownerId)]).toEqual([round, ownerId, true]);
        expect(guests.every((id) => present.has(id))).toBe(true);
      }
    }
  }
  expect(referred).toBeGreaterThan(ROUNDS);
  await platform.stop();
}, 120_000);
