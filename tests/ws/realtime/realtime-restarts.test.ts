import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { connect, subscribe } from "./realtime-support.ts";

const configOf = (read: string) => `{
  databases: { shared: { tables: {
    posts: { access: { read: ${read}, insert: true, update: true, delete: true } },
    others: { access: { read: true, insert: true, update: true, delete: true } },
    owned: { access: { read: (auth) => auth !== null, insert: true, update: true, delete: true } },
  } } },
}`;
const CONFIG = configOf("true");

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const insert = (id: string, name = "posts") => user.post(`/api/db/shared/tables/${name}`, { id });
const channelOf = (name: string) => `realtime:shared:${name}`;

/** Subscribes with `since`, and returns the answer and the ids of what is replayed. */
async function resume(
  since: number | undefined,
  name = "posts",
): Promise<{ isLost: boolean; seq: number; ids: string[] }> {
  const socket = await connect(platform, user);
  const answer = await subscribe(socket, channelOf(name), since === undefined ? {} : { since });
  const ids: string[] = [];
  await socket.send({ type: "flush", channel: channelOf(name), requestId: "1" });
  for (;;) {
    const event = await socket.next<JsonObject>();
    if (event["type"] === "done") break;
    ids.push(String(event["docId"]));
  }
  await socket.close();
  return { isLost: answer["resync"] === true, seq: answer.seq, ids };
}

/** Inserts a record before the eyes of a subscriber, and returns the number of the change. */
async function watchedInsert(id: string, name = "posts"): Promise<number> {
  const socket = await connect(platform, user);
  await subscribe(socket, channelOf(name));
  await insert(id, name);
  const { seq } = await socket.next<{ seq: number } & JsonObject>();
  await socket.close();
  return seq;
}

test("[RT370] a client that has the last change before a restart goes on after it", async () => {
  const before = await watchedInsert("a1");
  const last = await watchedInsert("a2");
  const idle = await resume(undefined, "others");
  await platform.restart();
  expect(await resume(last)).toMatchObject({ isLost: false, ids: [] });
  expect(await resume(before)).toMatchObject({ isLost: true });
  // A table that has not changed since the subscription began.
  expect(await resume(idle.seq, "others")).toMatchObject({ isLost: false });
  await platform.restart();
  // The number was another one in between.
  expect(await resume(last)).toMatchObject({ isLost: true });
});

test("[RT370] a number that a client keeps through a restart stays good if it is the one that it got last", async () => {
  let { seq } = await resume(undefined);
  for (let turn = 0; turn < 3; turn++) {
    await platform.restart();
    const answer = await resume(seq);
    expect(answer).toMatchObject({ isLost: false, ids: [] });
    seq = answer.seq;
  }
});

test("[RT370] what is written after the restart is replayed, whether the table has a subscriber or not", async () => {
  const last = await watchedInsert("b1");
  await platform.restart();
  const watching = await connect(platform, user);
  await subscribe(watching, channelOf("posts"));
  await insert("b2");
  await insert("b3");
  for (const docId of ["b2", "b3"]) await watching.expect({ type: "db_change", docId });
  expect(await resume(last)).toMatchObject({ isLost: false, ids: ["b2", "b3"] });
  await watching.close();
  const later = await watchedInsert("b4");
  await platform.restart();
  await insert("b5");
  expect(await resume(later)).toMatchObject({ isLost: false, ids: ["b5"] });
});

test("[RT371] resync after a restart where a rule decides who sees what, and where the config has changed", async () => {
  const [last, owned] = [await watchedInsert("c1"), await watchedInsert("c1", "owned")];
  await platform.restart({ config: configOf("() => true") });
  expect(await resume(last)).toMatchObject({ isLost: true });
  await platform.restart({ config: CONFIG });
  expect(await resume(last)).toMatchObject({ isLost: true });
  expect(await resume(owned, "owned")).toMatchObject({ isLost: true });
});

test("[RT371] resync after a kill, and where an older state of the file was put back", async () => {
  const killed = await watchedInsert("d1");
  await platform.kill();
  await platform.restart();
  expect(await resume(killed)).toMatchObject({ isLost: true });
  const kept = await watchedInsert("d2");
  await platform.restart();
  const file = join(platform.dataDirectory, "databases/shared.db");
  await platform.kill("SIGTERM");
  copyFileSync(file, `${file}.kept`);
  await platform.restart();
  const lost = await watchedInsert("d3");
  await platform.kill("SIGTERM");
  copyFileSync(`${file}.kept`, file);
  await platform.restart();
  expect(await resume(lost)).toMatchObject({ isLost: true });
  // The records are those that this client has.
  expect(await resume(kept)).toMatchObject({ isLost: false, ids: [] });
  const next = await watchedInsert("d4");
  expect(next).toBeGreaterThan(lost);
});
