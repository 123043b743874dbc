import { constants, setPriority } from "node:os";
import {
  HIGHLIGHT_BYTES_MAX,
  HIGHLIGHT_HITS_MAX,
  HIGHLIGHT_PHRASE_LENGTH,
  HIGHLIGHT_PIECE_LENGTH,
  QUERY_LOCK_TIMEOUT_MS,
  READ_CONNECTIONS_MAX,
  READ_PART_BYTES,
  READ_RESULT_BYTES_MAX,
  READ_VALUE_BYTES_MAX,
} from "../limits.ts";
import { createHighlighter, createWordMarks } from "./highlight.ts";
import { createReaders, createValues, serveQueries } from "./query-process.ts";
import type { ProcessLimits, ProcessResponse } from "./query-protocol.ts";

/** Starts a query process. Throws when the system has no process or descriptor left. */
export function spawnQueryChild(onResponse: (response: ProcessResponse) => void): Bun.Subprocess {
  const limits: ProcessLimits = {
    connectionsMax: READ_CONNECTIONS_MAX,
    resultBytesMax: READ_RESULT_BYTES_MAX,
    valueBytesMax: READ_VALUE_BYTES_MAX,
    partBytes: READ_PART_BYTES,
    lockTimeoutMs: QUERY_LOCK_TIMEOUT_MS,
    highlight: {
      hitsMax: HIGHLIGHT_HITS_MAX,
      bytesMax: HIGHLIGHT_BYTES_MAX,
      pieceLength: HIGHLIGHT_PIECE_LENGTH,
      phraseLength: HIGHLIGHT_PHRASE_LENGTH,
    },
  };
  const readers = `(${createReaders.toString()})(sqlite, limits)`;
  const wordMarks = `(${createWordMarks.toString()})(sqlite, limits.highlight)`;
  const highlighter = `(${createHighlighter.toString()})(limits.highlight, ${wordMarks})`;
  const tools = `${readers}, (${createValues.toString()})(), ${highlighter}`;
  const constants = `const limits = ${JSON.stringify(limits)}, sqlite = require("node:sqlite")`;
  const source = `${constants}; (${serveQueries.toString()})(process, limits, ${tools});`;
  const child = Bun.spawn([process.execPath, "-e", source], {
    // Not the caller's directory: a bunfig.toml or .env there is none of this process's business.
    cwd: process.platform === "win32" ? (process.env["SystemRoot"] ?? "C:\\") : "/",
    env: processEnvironment(),
    stdio: ["ignore", "ignore", "ignore"],
    serialization: "advanced",
    ipc: (response: ProcessResponse) => onResponse(response),
  });
  child.unref();
  yieldProcessor(child.pid);
  return child;
}

/** Where processors are short, the server's own thread comes before long reads. */
function yieldProcessor(pid: number): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has ended already, or the system does not allow it: the read runs all the same.
  }
}

export function describeExit(child: Bun.Subprocess): string {
  return child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`;
}

/** The secrets in the server's environment stay there. */
function processEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {
    // Makes a compiled executable behave as Bun itself.
    BUN_BE_BUN: "1",
    // The process dies with the server, however that ends.
    BUN_FEATURE_FLAG_NO_ORPHANS: "1",
  };
  for (const name of ["TMPDIR", "TEMP", "TMP", "SystemRoot"]) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}
