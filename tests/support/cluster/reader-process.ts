/** A reader of a follower's file, in a process of its own: each of its snapshots has to be one of the owner's states. It ends with its input. */
import { Database } from "bun:sqlite";

const [path = ""] = process.argv.slice(2);
const sqlite = new Database(path, { readonly: true });
sqlite.run("PRAGMA busy_timeout = 5000");
const state = sqlite.prepare<{ number: number; sum: number; rows: number; indexed: number }, []>(
  `SELECT "number", (SELECT coalesce(sum("copies"), 0) FROM "notes") AS "sum", (SELECT count(*) FROM "notes") AS "rows",
    (SELECT count(*) FROM "notes" INDEXED BY "notes_text" WHERE "text" >= '') AS "indexed" FROM "_platform_commit"`,
);
let isEnded = false;
void Bun.stdin.text().then(() => {
  isEnded = true;
});

let snapshots = 0;
let last = 0;
const wrong: unknown[] = [];
while (!isEnded) {
  sqlite.run("BEGIN");
  const first = state.get();
  // Others are quick, and some keep a WAL from ending for a while.
  if (snapshots % 7 === 0) await Bun.sleep(snapshots % 30);
  const second = state.get();
  const isWhole = first !== null && first.sum === 0 && first.rows === first.indexed && first.number >= last;
  if (!isWhole || JSON.stringify(first) !== JSON.stringify(second)) wrong.push({ last, first, second });
  if (snapshots % 50 === 0) {
    const check = sqlite.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get()?.integrity_check;
    if (check !== "ok") wrong.push(check);
  }
  sqlite.run("COMMIT");
  last = first?.number ?? last;
  snapshots += 1;
  await Bun.sleep(1);
}
console.log(JSON.stringify({ snapshots, last, wrong: wrong.slice(0, 3) }));
