/** A follower that applies a log in a file, in a process of its own. With a number of writes it ends in the middle of the last of them. */
import fs from "node:fs";
import { systemClock } from "../../../src/kernel/clock.ts";
import { systemIds } from "../../../src/kernel/ids.ts";
import { FollowerFiles } from "../../../src/server/cluster/follower/follower-files.ts";
import { writeAt } from "../../../src/server/cluster/follower/wal-index.ts";
import { FileLogReader } from "./file-log.ts";

const [directory = "", log = "", mode = "all"] = process.argv.slice(2);
/** Write in the middle of which the process ends, from 1; 0: none. */
const endAt = Number(process.env["END_AT_WRITE"] ?? "0");

// Those of the trial at the start count too.
let writes = 0;
const write = (descriptor: number, bytes: Uint8Array, offset: number): void => {
  writes += 1;
  if (writes === endAt) {
    const part = Math.floor((bytes.byteLength * (writes % 5)) / 4);
    if (part > 0) writeAt(descriptor, bytes.subarray(0, part), offset);
    process.kill(process.pid, "SIGKILL");
  }
  writeAt(descriptor, bytes, offset);
};

const files = new FollowerFiles(
  {
    directory,
    clock: systemClock,
    ids: systemIds,
    onVisible: () => {},
    onClosing: () => {},
    onFailure: (path, cause) => console.log(`failed ${path} ${cause}`),
    source: null,
    write,
  },
  { wasOwner: false },
);
const reader = new FileLogReader(log);
const started = process.cpuUsage();

/** Applies what the log has. Returns whether there was anything. */
function step(): boolean {
  const read = reader.read(20);
  const entries = read.filter(({ position }) => position > files.place.position);
  if (entries.length > 0) files.apply(entries);
  return read.length > 0;
}

if (mode === "all") {
  while (step()) await new Promise((resolve) => setImmediate(resolve));
  while (!files.isSettled) await Bun.sleep(1);
  const { user, system } = process.cpuUsage(started);
  const last = files.place.position;
  await files.close();
  console.log(JSON.stringify({ position: last, writes, cpuUs: user + system }));
} else {
  // Until it is killed.
  fs.writeFileSync(`${directory}/started`, "");
  for (;;) {
    if (step()) await new Promise((resolve) => setImmediate(resolve));
    else await Bun.sleep(2);
  }
}
