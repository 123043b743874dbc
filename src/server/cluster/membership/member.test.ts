/** Tests of a member on a real PostgreSQL. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startMember } from "../../../../tests/support/cluster/members.ts";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { temporaryDirectory } from "../../../../tests/support/platform.ts";
import { until } from "../../../../tests/support/until.ts";
import { makeSchema } from "../postgres/schema.ts";
import { NotedPlace } from "./noted-place.ts";

/** Clocks of the members run so many times faster. */
const SPEED = 4;

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await TestPostgres.start();
  const connection = await postgres.connect();
  await makeSchema(connection, 1_000_000);
  connection.close();
});
afterAll(() => postgres.stop());

const row = (number: number) => ({ file: "f", number, content: new Uint8Array([number]) });

test("[CLU48] a member takes a group without owner, commits, and hands it over; another applies what it has committed, and follows it", async () => {
  const roles: string[] = [];
  const one = startMember({
    postgres: postgres.url,
    node: "one",
    speed: SPEED,
    events: { owns: (isOwner) => void roles.push(`one ${isOwner}`) },
  });
  await until("it is the owner", () => one.member.isOwner);
  const two = startMember({
    postgres: postgres.url,
    node: "two",
    speed: SPEED,
    events: { owns: (isOwner) => void roles.push(`two ${isOwner}`) },
  });
  let last = 0;
  for (let number = 1; number <= 20; number++) {
    last = one.member.commit(row(number)) ?? 0;
    expect(one.member.mayAnswer(last)).toBe(false);
    if (number % 5 === 0) await until("it is acknowledged", () => one.member.mayAnswer(last));
  }
  expect(one.member.announcement?.position).toBe(last);
  expect(two.member.commit(row(99))).toBeNull();
  await until("the other has applied it", () => two.member.position === last);
  one.member.release();
  expect(one.member.commit(row(99))).toBeNull();
  await until("the other is the owner", () => two.member.isOwner);
  expect(roles).toEqual(["one true", "one false", "two true"]);
  expect(two.applied.flatMap(({ body }) => body.map(({ number }) => number))).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 1),
  );
  const next = two.member.commit(row(21)) ?? 0;
  await until("the new owner's commit is acknowledged", () => two.member.mayAnswer(next));
  await until("the former owner follows", () => one.member.position === next);
  expect(one.setAsideCount).toBe(0);
  one.stop();
  two.stop();
});

test("[CLU47] a follower that is asked to tells PostgreSQL of a position as soon as it shows it", async () => {
  const owner = startMember({ postgres: postgres.url, node: "owner", speed: SPEED });
  await until("it is the owner", () => owner.member.isOwner);
  // By its own clocks it renews its lease in some minutes.
  const slow = startMember({ postgres: postgres.url, node: "slow", speed: 1 / 100 });
  await until("it answers", () => slow.member.mayAnswer(slow.member.position));
  const position = owner.member.commit(row(1)) ?? 0;
  await until("it is acknowledged", () => owner.member.mayAnswer(position));
  slow.member.confirm(position);
  const place = owner.member.announcement;
  if (place === null) throw new Error("the owner has something to announce");
  slow.member.announced(place);
  await until("PostgreSQL knows", async () => {
    const rows = await postgres.sql("SELECT applied::text FROM platform.nodes WHERE node = 'slow'");
    return Number(rows[0]?.[0]) >= position;
  });
  owner.stop();
  slow.stop();
});

test("[CLU49] what was noted is read again, also where the last note was cut off", () => {
  const path = join(temporaryDirectory(), "noted");
  const first = new NotedPlace(path);
  expect(first.noted).toEqual({ history: 0, place: { position: 0, nonce: "" } });
  for (let position = 1; position <= 3; position++) first.write(1, { position, nonce: `n${position}` });
  first.close();
  const again = new NotedPlace(path);
  expect(again.noted).toEqual({ history: 1, place: { position: 3, nonce: "n3" } });
  // The third note is in the second slot: a power cut leaves a part of it.
  const bytes = new Uint8Array(512);
  const file = readFileSync(path);
  bytes.set(file);
  bytes.fill(0, 256 + 20);
  again.close();
  writeFileSync(path, bytes);
  const after = new NotedPlace(path);
  expect(after.noted).toEqual({ history: 1, place: { position: 2, nonce: "n2" } });
  // What is noted next takes the place of the damaged one.
  after.write(1, { position: 4, nonce: "n4" });
  after.close();
  const last = new NotedPlace(path);
  expect(last.noted.place.position).toBe(4);
  last.close();
});
