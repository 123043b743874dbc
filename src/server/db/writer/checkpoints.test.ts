import { expect, test } from "bun:test";
import { CHECKPOINT_BYTES, WAL_BYTES_MAX, WAL_BYTES_STOP } from "../limits.ts";
import { type CheckpointRequest, Checkpoints } from "./checkpoints.ts";

function checkpoints() {
  const state = {
    walBytes: 0,
    movedBytes: 0,
    holds: 0,
    failures: 0,
    restarts: 0,
    requests: [] as (CheckpointRequest | { bytesKept: number })[],
    ends: [] as { resolve: () => void; reject: (error: Error) => void }[],
  };
  const subject = new Checkpoints({
    wal: () => ({ bytes: state.walBytes, isMoved: state.walBytes > 0 && state.movedBytes === state.walBytes }),
    holdWriter: () => {
      state.holds += 1;
      return () => {
        state.holds -= 1;
      };
    },
    checkpoint: (request) => {
      state.requests.push(request);
      state.movedBytes = state.walBytes;
      return new Promise((resolve, reject) => state.ends.push({ resolve, reject }));
    },
    restart: (bytesKept) => {
      state.restarts += 1;
      state.requests.push({ bytesKept });
      return new Promise((resolve, reject) => state.ends.push({ resolve, reject }));
    },
    onFailure: () => {
      state.failures += 1;
    },
  });
  const grow = (bytes: number) => {
    state.walBytes = bytes;
    subject.watch();
  };
  return { state, subject, grow };
}

test("[DB13] beyond its bound the writer waits for a second checkpoint, and far beyond it at once", async () => {
  const { state, subject, grow } = checkpoints();
  grow(CHECKPOINT_BYTES);
  expect(subject.isRunning).toBe(false);
  grow(CHECKPOINT_BYTES + 1);
  expect([subject.isRunning, state.holds]).toEqual([true, 0]);
  grow(WAL_BYTES_MAX + 1);
  expect(state.holds).toBe(0);
  grow(WAL_BYTES_STOP + 1);
  expect(state.holds).toBe(1);
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  expect([subject.isRunning, state.holds]).toEqual([true, 1]);
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  expect([subject.isRunning, state.holds]).toEqual([false, 0]);
});

test("[DB320] what is written during a checkpoint is moved by shorter ones, before the writer waits", async () => {
  const { state, grow } = checkpoints();
  const end = async (): Promise<void> => {
    state.ends.shift()?.resolve();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  const MIB = 1024 * 1024;
  grow(CHECKPOINT_BYTES + 1);
  // 12 MiB arrive during the first checkpoint, 2 during the second, and a little during the third.
  grow(WAL_BYTES_MAX + 1);
  await end();
  expect([state.holds, state.restarts, state.ends.length]).toEqual([0, 0, 1]);
  grow(WAL_BYTES_MAX + 2 * MIB);
  await end();
  expect([state.holds, state.restarts, state.ends.length]).toEqual([0, 0, 1]);
  grow(WAL_BYTES_MAX + 2 * MIB + 1_000);
  await end();
  expect([state.holds, state.restarts]).toEqual([1, 1]);
  state.walBytes = 0;
  await end();
  expect(state.holds).toBe(0);
  // The first checkpoint found less than the bound, so that no other was to follow it.
  const further = { sync: true, next: true };
  expect(state.requests).toEqual([{ sync: false, next: false }, further, further, { bytesKept: WAL_BYTES_STOP }]);
});

test("[DB320] a checkpoint past the bound is followed by one that syncs the database file, also if nothing is left to move", async () => {
  const { state, subject, grow } = checkpoints();
  grow(WAL_BYTES_MAX + 1);
  for (let step = 0; step < 3; step++) {
    state.ends.shift()?.resolve();
    await Bun.sleep(1);
  }
  await subject.settled();
  expect(state.requests).toEqual([
    { sync: false, next: true },
    { sync: true, next: true },
    { bytesKept: WAL_BYTES_STOP },
  ]);
});

test("[DB320] a WAL that grows as fast as it is moved holds the writer after three further checkpoints", async () => {
  const { state, grow } = checkpoints();
  grow(CHECKPOINT_BYTES + 1);
  let passes = 0;
  for (let bytes = WAL_BYTES_MAX + 1; state.restarts === 0; bytes += 1024 * 1024) {
    grow(bytes);
    state.ends.shift()?.resolve();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    passes++;
  }
  expect([passes, state.holds]).toEqual([4, 1]);
});

test("[DB14] after a WAL could not restart, the next wait comes a whole bound later", async () => {
  const { state, subject, grow } = checkpoints();
  grow(WAL_BYTES_MAX + 1);
  for (let n = 0; n < 3; n += 1) {
    state.ends.shift()?.resolve();
    await Bun.sleep(1);
  }
  expect(subject.isRunning).toBe(false);
  grow(WAL_BYTES_MAX + CHECKPOINT_BYTES + 2);
  grow(WAL_BYTES_MAX + CHECKPOINT_BYTES + 3);
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  expect([subject.isRunning, state.holds]).toEqual([false, 0]);
  grow(100);
  grow(CHECKPOINT_BYTES + 1);
  expect(subject.isRunning).toBe(true);
});

test("[DB15] a failed checkpoint is reported, does not block the writer, and is retried later", async () => {
  const { state, subject, grow } = checkpoints();
  grow(WAL_BYTES_STOP + 1);
  expect(state.holds).toBe(1);
  state.ends.shift()?.reject(new Error("no process"));
  await Bun.sleep(1);
  expect([subject.isRunning, state.holds, state.failures]).toEqual([false, 0, 1]);
  grow(WAL_BYTES_STOP + CHECKPOINT_BYTES);
  expect(subject.isRunning).toBe(false);
  grow(WAL_BYTES_STOP + CHECKPOINT_BYTES + 2);
  expect(subject.isRunning).toBe(true);
});

test("[DB170] a fully checkpointed WAL restarts in the other process while the writer waits", async () => {
  const { state, subject, grow } = checkpoints();
  grow(CHECKPOINT_BYTES + 1);
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  expect([state.restarts, state.holds]).toEqual([1, 1]);
  expect(state.requests.at(-1)).toEqual({ bytesKept: CHECKPOINT_BYTES });
  state.ends.shift()?.resolve();
  await subject.settled();
  expect([subject.isRunning, state.holds]).toEqual([false, 0]);
});

test("[DB170] a WAL that grew during its checkpoint does not restart, nor does one being closed", async () => {
  const { state, subject, grow } = checkpoints();
  grow(CHECKPOINT_BYTES + 1);
  grow(CHECKPOINT_BYTES + 2);
  state.ends.shift()?.resolve();
  await subject.settled();
  const last = subject.runLast();
  await Bun.sleep(1);
  state.ends.shift()?.resolve();
  await last;
  expect([state.restarts, state.holds]).toEqual([0, 0]);
});

test("[DB361] no transaction begins on a WAL that has been moved before the other process has restarted it", async () => {
  const { state, subject, grow } = checkpoints();
  expect(subject.mayBegin()).toBe(true);
  grow(CHECKPOINT_BYTES + 1);
  expect([subject.mayBegin(), state.holds]).toEqual([false, 1]);
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  expect([state.restarts, state.holds]).toEqual([1, 1]);
  // The restart writes a frame.
  state.walBytes = 1;
  state.ends.shift()?.resolve();
  await subject.settled();
  expect([subject.mayBegin(), state.holds]).toEqual([true, 0]);
});

test("[DB361] a file that stays open after the checkpoint for its close restarts its WAL before the next transaction", async () => {
  const { state, subject } = checkpoints();
  state.walBytes = 10_000;
  const last = subject.runLast();
  await Bun.sleep(1);
  state.ends.shift()?.resolve();
  await last;
  expect([subject.mayBegin(), state.holds]).toEqual([false, 1]);
  await Bun.sleep(1);
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  expect(state.restarts).toBe(1);
  state.ends.shift()?.resolve();
  await subject.settled();
  expect([subject.mayBegin(), state.holds]).toEqual([true, 0]);
});

test("[DB361] a transaction does not wait where a checkpoint fails, or a reader prevents the restart", async () => {
  const { state, subject, grow } = checkpoints();
  grow(CHECKPOINT_BYTES + 1);
  expect(subject.mayBegin()).toBe(false);
  state.ends.shift()?.reject(new Error("no process"));
  await Bun.sleep(1);
  expect([subject.mayBegin(), state.holds]).toEqual([true, 0]);
  void subject.run();
  state.ends.shift()?.resolve();
  await Bun.sleep(1);
  state.ends.shift()?.resolve();
  await subject.settled();
  expect([subject.mayBegin(), state.holds, state.restarts]).toEqual([true, 0, 1]);
});
