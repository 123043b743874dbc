// What a traced server did to its files, in the order in which it did it: the lines of `strace -f -y -xx`.

export type FileCall =
  | { kind: "open"; path: string; creates: boolean; truncates: boolean }
  | { kind: "write"; path: string; offset: number | null; data: Buffer }
  | { kind: "truncate"; path: string; size: number }
  /** The sync of a file or directory begins; `synced` of the same line is its end. Its file may get another name meanwhile. */
  | { kind: "syncing"; path: string }
  | { kind: "synced" }
  /** A rename begins: descriptors may be called by the new name before it ends. */
  | { kind: "renaming"; from: string; to: string }
  | { kind: "rename"; from: string; to: string }
  | { kind: "link"; from: string; to: string }
  | { kind: "remove"; path: string }
  | { kind: "directory"; path: string };

/** `line`: of the trace, where the call began. */
export type Traced = (FileCall | { kind: "sent"; data: Buffer }) & { line: number };

/** The calls that are traced: all that change a file or a directory, or send something. */
export const TRACED =
  "open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync,sync_file_range,ftruncate,truncate,fallocate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,copy_file_range,sendfile,splice";

const LINE = /^(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))$/s;

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll("\\x", ""), "hex");
const text = (hex: string): string => bytes(hex).toString();

interface Started {
  name: string;
  args: string;
  line: number;
}

/**
 * Reads a trace. Calls are given where they end, writes where they begin: from then on their bytes may reach the disk. `onUnknown`
 * is called with a call below `root` that is not understood. Errors: by default, those of such a call.
 */
export function* tracedCalls(trace: string, root: string, onUnknown = refused): Generator<Traced> {
  const started = new Map<string, Started>();
  let line = 0;
  for (const raw of trace.split("\n")) {
    line += 1;
    const [, pid = "", name, rest = "", resumed, end = ""] = LINE.exec(raw) ?? [];
    if (name !== undefined) {
      const isUnfinished = rest.endsWith("<unfinished ...>");
      const args = isUnfinished ? rest.slice(0, -"<unfinished ...>".length) : rest;
      const call: Started = { name, args, line };
      if (isUnfinished) started.set(pid, call);
      for (const effect of begun(call, root)) yield { ...effect, line };
      if (!isUnfinished) for (const effect of ended(call, root, onUnknown)) yield { ...effect, line };
    } else if (resumed !== undefined) {
      const call = started.get(pid);
      started.delete(pid);
      if (call === undefined) continue;
      for (const effect of ended({ ...call, args: call.args + end }, root, onUnknown))
        yield { ...effect, line: call.line };
    }
  }
}

function refused(call: string): void {
  throw new Error(`a call that the simulated disk does not know: ${call}`);
}

type Effect = FileCall | { kind: "sent"; data: Buffer };

const PATHS = /"([^"]*)"/g;
const pathsOf = (args: string): string[] => [...args.matchAll(PATHS)].map(([, hex = ""]) => text(hex));

const WRITE = /^\d+<([^>]*)>(?:\(deleted\))?, "([^"]*)"(?:, \d+(?:, (\d+))?)?/;
const VECTORS = /^\d+<([^>]*)>(?:\(deleted\))?, (\[.*\])(?:, \d+(?:, (\d+))?)?/;
const IOV = /iov_base="([^"]*)"/g;

/** Gives the effects that a call has as soon as it begins. */
function* begun({ name, args }: Started, root: string): Generator<Effect> {
  if (name === "fsync" || name === "fdatasync") {
    const path = text(DESCRIPTOR.exec(args)?.[1] ?? "");
    if (path.startsWith(root)) yield { kind: "syncing", path };
    return;
  }
  if (RENAMES.has(name)) {
    const [from = "", to = ""] = pathsOf(args);
    if (from.startsWith(root)) yield { kind: "renaming", from, to };
    return;
  }
  if (name === "write" || name === "pwrite64" || name === "sendto") {
    const [, target = "", hex = "", offset] = WRITE.exec(args) ?? [];
    yield* wrote(text(target), bytes(hex), name === "pwrite64" ? Number(offset) : null, root);
    return;
  }
  if (name !== "writev" && name !== "pwritev" && name !== "pwritev2" && name !== "sendmsg") return;
  const [, target = "", vectors = "", offset] = VECTORS.exec(args) ?? [];
  const list = name === "sendmsg" ? args : vectors;
  const data = Buffer.concat([...list.matchAll(IOV)].map(([, hex = ""]) => bytes(hex)));
  const path = name === "sendmsg" ? "socket:" : text(target);
  yield* wrote(path, data, name.startsWith("pwritev") ? Number(offset) : null, root);
}

function* wrote(path: string, data: Buffer, offset: number | null, root: string): Generator<Effect> {
  if (path.startsWith(root)) yield { kind: "write", path, offset, data };
  else if (/^(?:socket|TCP)/.test(path)) yield { kind: "sent", data };
}

const FAILED = /= -1 E\w+/;
const RENAMES: ReadonlySet<string> = new Set(["rename", "renameat", "renameat2"]);
const DESCRIPTOR = /^\d+<([^>]*)>/;

function* ended({ name, args }: Started, root: string, onUnknown: typeof refused): Generator<Effect> {
  if (FAILED.test(args)) return;
  const [path = "", to = ""] = pathsOf(args);
  const file = text(DESCRIPTOR.exec(args)?.[1] ?? "");
  switch (name) {
    case "open":
    case "openat":
    case "creat":
      if (!path.startsWith(root)) return;
      yield {
        kind: "open",
        path,
        creates: name === "creat" || args.includes("O_CREAT"),
        truncates: name === "creat" || args.includes("O_TRUNC"),
      };
      return;
    case "fsync":
    case "fdatasync":
      if (file.startsWith(root)) yield { kind: "synced" };
      return;
    case "ftruncate":
      if (file.startsWith(root)) yield { kind: "truncate", path: file, size: Number(/, (\d+) *\)/.exec(args)?.[1]) };
      return;
    case "rename":
    case "renameat":
    case "renameat2":
      if (path.startsWith(root)) yield { kind: "rename", from: path, to };
      return;
    case "link":
    case "linkat":
      if (path.startsWith(root)) yield { kind: "link", from: path, to };
      return;
    case "unlink":
    case "unlinkat":
    case "rmdir":
      if (path.startsWith(root)) yield { kind: "remove", path };
      return;
    case "mkdir":
    case "mkdirat":
      if (path.startsWith(root)) yield { kind: "directory", path };
      return;
    case "write":
    case "pwrite64":
    case "writev":
    case "pwritev":
    case "pwritev2":
    case "sendto":
    case "sendmsg":
      return;
    default:
      // Reads below the root, and writes elsewhere.
      if (name === "copy_file_range" && !text([...args.matchAll(/<([^>]*)>/g)][1]?.[1] ?? "").startsWith(root)) return;
      if ([...args.matchAll(/<([^>]*)>/g)].some(([, hex = ""]) => text(hex).startsWith(root)) || path.startsWith(root))
        onUnknown(`${name}(${args.slice(0, 200)}`);
  }
}
