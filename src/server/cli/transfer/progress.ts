import { Presets, SingleBar } from "cli-progress";

export interface Progress {
  /** Updates the bar. `done` is the completed part of the whole, with `records` records. */
  show(done: number, records: number): void;
  end(): void;
}

/** Creates a bar on a terminal, nothing otherwise. It is on standard error, as standard output may be the export itself. */
export function createProgress(whole: number): Progress {
  if (process.stderr.isTTY !== true || whole === 0) return { show() {}, end() {} };
  const bar = new SingleBar(
    {
      format: "{bar} {percentage}%  {records} records",
      stream: process.stderr,
      hideCursor: true,
    },
    Presets.shades_classic,
  );
  bar.start(whole, 0, { records: 0 });
  return {
    show: (done, records) => bar.update(done, { records }),
    end: () => bar.stop(),
  };
}
