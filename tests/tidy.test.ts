import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

// The rules of the house that a test can hold: who may import whom, sizes, banned calls, numbered rules, links.

const root = resolve(import.meta.dir, "..");
const SOURCE_LINES_MAX = 500;
const FOLDER_FILES_MAX = 25;

const files = (pattern: string): string[] =>
  [...new Bun.Glob(pattern).scanSync({ cwd: root })].filter((path) => !path.includes("node_modules/")).sort();
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const isTest = (path: string): boolean => path.endsWith(".test.ts");

const sources = files("src/**/*.{ts,tsx}").filter((path) => !isTest(path) && !path.endsWith(".d.ts"));
const tests = [...files("src/**/*.test.ts"), ...files("tests/**/*.test.ts"), ...files("{example,schema}/**/*.test.ts")];

/** Without types and comments, laid out by one printer: what the checks below look at. */
const transpilers = {
  ts: new Bun.Transpiler({ loader: "ts", target: "bun" }),
  tsx: new Bun.Transpiler({ loader: "tsx", target: "bun" }),
};
const codes = new Map<string, string>();
const codeOf = (path: string): string => {
  const code = codes.get(path) ?? transpilers[path.endsWith(".tsx") ? "tsx" : "ts"].transformSync(read(path));
  codes.set(path, code);
  return code;
};

/** Types too: a type from a layer above is a dependency like any other. */
const importsOf = (path: string): string[] =>
  [...read(path).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g)].map(([, target = ""]) =>
    relative(root, resolve(root, dirname(path), target)),
  );

/** Programs of their own, started beside the server or in a browser: they have no one to get a clock from, and begin by themselves. */
const isProgram = (path: string): boolean =>
  ["src/main.ts", "src/server/db/processes/program.ts", "src/dashboard/main.tsx"].includes(path) ||
  path.endsWith("-job.ts");

/**
 * The room that a source lies in: `client`, `dashboard`, `kernel`, a floor or an area of `src/server`, `schema` for what the server
 * stores for itself, and the file's own name where it lies in `src`.
 */
const roomOf = (path: string): string => {
  const [top = "", first = "", second = "", third = ""] = path.split("/");
  if (top !== "src") return top;
  if (first !== "server") return first;
  return second === "areas" ? third : second;
};

describe("floors: main -> cli -> platform -> areas -> {http, access, jobs, sockets} -> db -> config -> disk -> kernel", () => {
  const LAYERS: readonly (readonly string[])[] = [
    ["schema"],
    ["kernel"],
    ["disk"],
    ["config"],
    ["db"],
    ["access", "cluster", "http", "jobs", "sockets"],
    ["areas"],
    ["platform", "index.ts"],
    ["cli"],
    ["main.ts"],
  ];
  const named = new Set(LAYERS.flat());
  const levelOf = (place: string): number =>
    LAYERS.findIndex((layer) => layer.includes(named.has(place) ? place : "areas"));

  /** Modules of the server that the client and the dashboard may take along: each of them imports types, or one another, and touches no environment. */
  const PURE: readonly string[] = [
    "src/kernel/json/json.ts",
    "src/kernel/json/text.ts",
    "src/kernel/limits.ts",
    "src/kernel/records/aggregate-options.ts",
    "src/kernel/records/filter-common.ts",
    "src/kernel/records/filter-group.ts",
    "src/kernel/records/filter-match.ts",
    "src/kernel/records/geo.ts",
    "src/kernel/records/order.ts",
    "src/kernel/records/query.ts",
    "src/kernel/records/text-match.ts",
    "src/kernel/records/value-path.ts",
    "src/kernel/sql/tokens.ts",
    "src/kernel/text/includes-text.ts",
    "src/kernel/time/duration.ts",
    "src/kernel/transfer/csv-cells.ts",
    "src/kernel/version.ts",
  ];

  const mayImport = (from: string, to: string): boolean => {
    const [here, there] = [roomOf(from), roomOf(to)];
    if (here === there) return true;
    // The dashboard runs in browsers: it knows the client, and of the server what is pure.
    if (here === "dashboard" || there === "dashboard")
      return here === "dashboard" && (there === "client" || PURE.includes(to));
    if (!named.has(here) && !named.has(there)) return false; // two areas
    const [level, below] = [levelOf(here), levelOf(there)];
    // Routes ask who it is that asks; the top layer is three files that know one another.
    return below < level || (below === level && here !== "access");
  };

  test("imports go down only, and never from one area to another", () => {
    const wrong = sources.flatMap((path) =>
      importsOf(path)
        .filter((target) => /^(?:src|schema)\//.test(target) && !mayImport(path, target))
        .map((target) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test("sources import nothing from tests, scripts, bench or the example", () => {
    const wrong = sources.flatMap((path) =>
      importsOf(path)
        .filter((target) => !/^(?:src\/|schema\/|package\.json$)/.test(target) || isTest(target))
        .map((target) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  /** Parts of the package that clients install. React is the page's own. */
  const PACKAGES: readonly string[] = ["@elysiajs/eden/treaty2", "react", "react/jsx-runtime"];

  test("[TC1] the client imports nothing of the server but types and pure modules", () => {
    const client = sources.filter((path) => path.startsWith("src/client/"));
    const valuesOf = (path: string): string[] =>
      [...codeOf(path).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)].map(([, target = ""]) =>
        target.startsWith(".") ? relative(root, resolve(root, dirname(path), target)) : target,
      );
    const wrong = [...client, ...PURE].flatMap((path) =>
      valuesOf(path)
        // Its version, which is the server's.
        .filter((target) => !target.startsWith("src/client/") && target !== "package.json" && !PURE.includes(target))
        .filter((target) => !PACKAGES.includes(target))
        .map((target) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
    // Types come from these alone: whatever else the server has would bring the types of Bun along.
    const foreign = client.flatMap((path) =>
      importsOf(path)
        .filter(
          (target) =>
            !/^src\/(?:client|kernel|server\/config\/(?:shapes|typed))\/|^src\/server\/config\/records\.ts$/.test(
              target,
            ),
        )
        .filter((target) => !PURE.includes(target))
        .map((target) => `${path} -> ${target}`),
    );
    expect(foreign).toEqual([]);
  });

  test("[CLU7] a server without a cluster loads nothing of it", () => {
    const isOfCluster = (path: string): boolean => /^src\/server\/(?:platform\/)?cluster\//.test(path);
    // Types are gone from this text; an `import()` loads when it is called.
    const loadsOf = (path: string): string[] =>
      [...codeOf(path).matchAll(/\b(?:from|import)\s*"(\.{1,2}\/[^"]+)"/g)].map(([, target = ""]) =>
        relative(root, resolve(root, dirname(path), target)),
      );
    expect(sources.some(isOfCluster)).toBe(true);
    expect(sources.filter((path) => !isOfCluster(path) && loadsOf(path).some(isOfCluster))).toEqual([]);
  });

  test("services know no HTTP library, and SQL stays out of endpoints and services", () => {
    const inArea = (path: string) => !named.has(roomOf(path));
    const wrong = sources.filter(
      (path) =>
        inArea(path) &&
        ((path.endsWith("/service.ts") && /from "elysia"/.test(read(path))) ||
          (/\/(?:service|routes|endpoints)\.ts$/.test(path) &&
            /\b(?:SELECT\b.+\bFROM|INSERT\s+(?:OR \w+ )?INTO|UPDATE \S+ SET|DELETE\s+FROM)\s/.test(codeOf(path)))),
    );
    expect(wrong).toEqual([]);
  });
});

describe("sources", () => {
  test(`have at most ${SOURCE_LINES_MAX} lines`, () => {
    const long = [...sources, ...files("{scripts,bench,example,schema}/**/*.{ts,tsx}")]
      .map((path) => ({ path, lines: read(path).split("\n").length - 1 }))
      .filter(({ lines }) => lines > SOURCE_LINES_MAX);
    expect(long).toEqual([]);
  });

  /**
   * Each call, and the places that may make it; time and chance are arguments everywhere else. The end of the process waits
   * for real time; a nonce and a request's id must be nobody's to choose.
   */
  const BANNED: readonly { call: RegExp; but: RegExp }[] = [
    { call: /\bDate\.now\(/, but: /^src\/(?:kernel\/clock\.ts|client\/runtime\.ts|dashboard\/|server\/cli\/)/ },
    { call: /\bnew Date(?:\(\)|;|\))/, but: /^src\/(?:kernel\/clock\.ts|server\/cli\/)/ },
    {
      call: /\bset(?:Timeout|Interval)\(/,
      but: /^src\/(?:kernel\/clock\.ts|client\/runtime\.ts|dashboard\/|server\/sockets\/socket-server\.ts|server\/cli\/)/,
    },
    // A client's waits are spread by chance, and React Native may have no `crypto`.
    { call: /\bMath\.random\(/, but: /^src\/client\/runtime\.ts$/ },
    {
      call: /\b(?:randomUUID|randomUUIDv7|getRandomValues|randomBytes)\(/,
      but: /^src\/(?:kernel\/ids|client\/runtime|dashboard\/[\w/-]+|server\/http\/http|server\/areas\/auth\/(?:means\/passwords|store\/sealing))\.tsx?$/,
    },
    { call: /\bconsole\.\w+\(/, but: /^src\/(?:server\/cli\/|client\/analytics\.ts$|main\.ts$)/ },
    { call: /\bprocess\.exit\(/, but: /^src\/(?:server\/cli\/|main\.ts$)/ },
    { call: /\b(?:eval|new Function)\(/, but: /^$/ },
    // What leaves this program takes one of three doors. Answers: listeners; those of workers, and one that redirects to HTTPS.
    {
      call: /\bBun\.(?:serve|listen|udpSocket)\b|"node:(?:http2|dgram)"/,
      but: /^src\/server\/(?:http\/listening\/(?:listener|worker-port)|http\/workers\/inner-server|areas\/tls\/http-port)\.ts$/,
    },
    // Messages: only the room of sockets has a server to upgrade by, or to publish to.
    {
      call: /\bserver\.(?:upgrade|publish)\(|\)\?\.upgrade\(/,
      but: /^src\/server\/(?:sockets\/[\w/-]+|http\/workers\/(?:inner-server|local-server|worker-listener))\.ts$/,
    },
    // Outgoing: mail servers and object stores too, and libraries that would connect by themselves. A worker asks its main process,
    // and a node of a cluster the log.
    {
      call: /\b(?:new S3Client|createTransport|Bun\.connect|createConnection|new WebSocket)\(|\bBun\.s3\b|\b(?:net|tls)\.connect\(/,
      but: /^src\/(?:server\/http\/outgoing\/[\w-]+|server\/http\/workers\/forwarding|server\/cluster\/postgres\/connection|client\/.+|dashboard\/.+)\.tsx?$/,
    },
    // Other servers are asked through one place, which bounds their answers. Commands ask the server that they are given.
    {
      call: /(?<![.\w#]|async )fetch(?:\(|\b(?=[,;\])}]))|\b(?:Bun|globalThis)\.fetch\b|"(?:node:https|undici|axios)"/,
      but: /^src\/(?:server\/http\/outgoing\/call|server\/http\/workers\/forwarding|client\/.+|dashboard\/.+|server\/cli\/remote)\.tsx?$/,
    },
  ];
  for (const { call, but } of BANNED) {
    test(`${call.source} is called where it belongs`, () => {
      const wrong = sources.filter((path) => !isProgram(path) && !but.test(path) && call.test(codeOf(path)));
      expect(wrong).toEqual([]);
    });
  }

  test("[CLU42] everything that leaves waits at the gate of a cluster, in each of its doors", () => {
    const listener = codeOf("src/server/http/listening/listener.ts");
    // Handlers that answer are given to the server wrapped, and sockets are made with the gate.
    expect(listener.match(/\bserver\.fetch\b/g)).toEqual(["server.fetch"]);
    expect(listener).toContain("const serve = leaving(server.fetch, { gate, failure })");
    expect(codeOf("src/server/http/listening/requests.ts")).toContain("const handle = leave(unheld)");
    // Whoever says that an answer shows nothing of what is stored, and so does not wait.
    const saying = (what: RegExp): string[] => sources.filter((path) => what.test(codeOf(path)));
    expect(saying(/\bsilently\(/)).toEqual([
      "src/kernel/answer-gate.ts",
      "src/server/http/http.ts",
      "src/server/sockets/socket-server.ts",
    ]);
    expect(saying(/\bSilentReply\b/)).toEqual([
      "src/server/areas/system/endpoints.ts",
      "src/server/http/http.ts",
      "src/server/http/reply.ts",
    ]);
    expect(codeOf("src/server/sockets/socket-server.ts")).not.toMatch(
      /socket\.data\.(?:open|message|drain)\?*\.?\(socket\b/,
    );
    const calls = (path: string): string[] =>
      [
        ...codeOf(`src/server/http/outgoing/${path}.ts`).matchAll(
          /(?<=await mayLeave\(\);\s+)\S.*?\(|(?:await fetch|transport\.sendMail)\(/g,
        ),
      ].map(([call]) => call);
    expect(calls("call")).toEqual(["const response = await fetch("]);
    expect(calls("mail-server")).toEqual(["await transport.sendMail("]);
  });

  test("Bun's own sockets are for the room of sockets, what a config's routes get of them, and topics", () => {
    const wrong = sources.filter(
      (path) =>
        !/^src\/server\/(?:sockets\/|areas\/functions\/sockets\/|areas\/realtime\/topics\/topic\.ts$|http\/workers\/(?:relay|worker-listener)\.ts$)/.test(
          path,
        ) && /\bServerWebSocket\b|import [^;]*\bSocket\b[^;]*"[./]+\/sockets\//.test(read(path)),
    );
    expect(wrong).toEqual([]);
  });

  test("do nothing when they are imported", () => {
    const DECLARATION =
      /^(?:import|export|const|let|function|async function|class|abstract class|type|interface|declare|assert\(|\/[/*]|[\s})\]>]|"use client";$|$)/;
    const AT_ONCE =
      /^(?:export )?(?:const|let) .*(?:\bawait\b|\bnew (?:Database|Worker)\(|\b(?:open|read|write|mkdir)\w*Sync\()/;
    // A file of limits may refuse to load when they contradict one another: `if (…) { throw …`.
    const CHECKED_LIMITS = /^if \([^\n]*\) \{\n {2}throw /gm;
    const wrong = sources
      .filter((path) => !isProgram(path))
      .flatMap((path) =>
        read(path)
          .replace(/`(?:\\[\s\S]|[^`\\])*`/g, "``")
          .replace(path.endsWith("limits.ts") ? CHECKED_LIMITS : /^$/g, "  ")
          .split("\n")
          .filter((line) => !DECLARATION.test(line) || (AT_ONCE.test(line) && !line.includes("=>")))
          .map((line) => `${path}: ${line}`),
      );
    expect(wrong).toEqual([]);
  });

  /** Each place that commits, restarts or ends a WAL, and why it may: all else passes the gate of its file, and has a number. [DB340] */
  const COMMITS: Readonly<Record<string, string>> = {
    "db/writer/commit-gate.ts": "the gate",
    "db/writer/file-job.ts": "asks the gate",
    "db/writer/wal-sync.ts": "only measures the WAL",
    "db/files/kept-file.ts": "only measures the WAL",
    "db/reads/read-transaction.ts": "ends transactions that read",
    "db/readers/reader-file.ts": "ends transactions that read",
    "db/files/database-file.ts": "opens files",
    "db/files/left-wal.ts": "moves what a crash has left",
    "db/files/upgrade-copy.ts": "ends the WAL for the copy of a file that is being opened",
    "db/audit/file-audit.ts": "by the gate",
    "db/files/table-places.ts": "by the gate",
    "db/instances/instance-files.ts": "by the gate",
    "db/migrations.ts": "by the gate",
    "db/schema/declared.ts": "by the gate",
    "areas/tables/accessor.ts": "no transaction of SQLite",
    "areas/vectorize/search-job.ts": "a transaction that reads",
    "areas/backup/work-folder.ts": "scratch files",
    "cli/migrate/pocketbase/records.ts": "a new file that no server has opened yet",
    "cli/migrate/supabase/move.ts": "a new file that no server has open",
    "cli/migrate/again/accounts.ts": "a file under the lock of its directory",
    "cli/migrate/again/records.ts": "a file under the lock of its directory",
    "cli/migrate/again/state.ts": "a file of its own",
    "jobs/reopening.ts": "the copy in a backup",
    "areas/d1/database-file.ts": "opens files of users, by the gate",
    "areas/d1/process/execute.ts": "asks the gate",
    "areas/d1/process/judge.ts": "names of statements",
    "cluster/follower/followed-file.ts": "holds the lock of the writer for what the log has, and ends a WAL",
    "cluster/follower/follower-state.ts": "a file of its own",
    "cluster/follower/follower-files.ts": "a file of its own",
    "cluster/follower/require-technique.ts": "a file of its own",
  };
  /** Each place that opens a connection that may write. */
  const CONNECTIONS: Readonly<Record<string, string>> = {
    "db/files/database-file.ts": "the writer's",
    "db/schema/migration-job.ts": "has a gate of its own, with places that the server has taken",
    "db/writer/file-job.ts": "asks the gate",
    "db/files/directory-lock.ts": "the lock of the directory",
    "db/files/removal-hold.ts": "the lock of a backup, a file without contents",
    "db/readers/workers-lock.ts": "the lock of workers, a file without contents",
    "areas/backup/archive/create.ts": "the copy in a backup",
    "areas/backup/archive/verify.ts": "an unpacked backup",
    "areas/backup/continuous/restore/restore.ts": "checks a restored database",
    "areas/backup/continuous/restore/tenant.ts": "counts the records of a restored database",
    "areas/backup/work-folder.ts": "scratch files",
    "cli/migrate/load/write.ts": "a new file that no server has opened yet",
    "cli/migrate/pocketbase/records.ts": "a new file that no server has opened yet",
    "cli/migrate/supabase/move.ts": "a new file that no server has open",
    "cli/migrate/again/accounts.ts": "a file under the lock of its directory",
    "cli/migrate/again/state.ts": "a file of its own",
    "areas/d1/database-file.ts": "keeps the WAL, by the gate",
    "areas/d1/process/execute.ts": "asks the gate",
    "cluster/follower/followed-file.ts": "holds the lock of the writer for what the log has",
    "cluster/follower/follower-state.ts": "a file of its own",
    "cluster/follower/require-technique.ts": "a file of its own",
  };

  /** Each place that names the file of a WAL. */
  const WALS: Readonly<Record<string, string>> = {
    "cli/doctor/checks.ts": "its size",
    "areas/backup/layout.ts": "what backups leave out",
    "areas/backup/continuous/capture/capture.ts": "whether one was left",
    "areas/backup/continuous/ship/scan.ts": "whether there is one",
    "areas/backup/continuous/ship/disk.ts": "whether there is one",
    "areas/backup/continuous/ship/snapshot.ts": "reads it",
    "areas/backup/continuous/restore/restored-files.ts": "removes that of an unfinished file",
    "areas/d1/database-file.ts": "its size",
    "areas/system/health.ts": "its size",
    "areas/triggers/index.ts": "whether one was left",
    "db/files/database-file.ts": "whether one was left, and removes that of a file that could not be made",
    "db/instances/instance-listing.ts": "its size, and removes that of a deleted instance",
    "db/open-unchanged.ts": "whether one was left",
    "db/files/left-wal.ts": "reads what was left",
    "db/files/kept-file.ts": "reads the frames of commits",
    "db/writer/wal-sync.ts": "syncs it",
    "cluster/follower/followed-file.ts": "appends to it",
    "cluster/follower/require-technique.ts": "a file of its own",
    "cluster/follower/follower-files.ts": "removes that of a file that was replaced",
  };

  test("commit and end a WAL at known places only", () => {
    const places = (allowed: Readonly<Record<string, string>>, pattern: RegExp) => {
      const found = sources.filter((path) => path.startsWith("src/server/") && pattern.test(codeOf(path)));
      const names = found.map((path) => path.slice("src/server/".length));
      return {
        unknown: names.filter((name) => allowed[name] === undefined),
        gone: Object.keys(allowed).filter((name) => !names.includes(name)),
      };
    };
    const commits = /\bCOMMIT\b|\.transaction\(|wal_checkpoint|journal_mode|wal_autocheckpoint|\bVACUUM\b/;
    expect(places(COMMITS, commits)).toEqual({ unknown: [], gone: [] });
    // In memory, or read-only as the word behind says.
    const connections =
      /new (?:Database|DatabaseSync)\((?!":memory:")(?![^;]*(?:read[oO]nly: (?:!0|true)|SQLITE_OPEN_READONLY))/;
    expect(places(CONNECTIONS, connections)).toEqual({ unknown: [], gone: [] });
    expect(places(WALS, /-wal["`|]/)).toEqual({ unknown: [], gone: [] });
  });

  test("leave no open work, and disable no checker", () => {
    // Written so that it does not match itself.
    const marks = /\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b|@ts-(?:ignor[e]|nochec[k])/;
    const wrong = [...sources, ...tests, ...files("{scripts,bench,example,schema}/**/*.ts")].filter((path) =>
      marks.test(read(path)),
    );
    expect(wrong).toEqual([]);
  });
});

describe("one house", () => {
  /** Lines of these files that the pattern finds. */
  const linesWith = (paths: readonly string[], pattern: RegExp) =>
    paths.flatMap((path) =>
      read(path)
        .split("\n")
        .filter((line) => pattern.test(line))
        .map((line) => ({ path, what: line.trim() })),
    );

  test("a folder of src has at most 25 files, tests not counted", () => {
    const counts = new Map<string, number>();
    for (const path of files("src/**/*").filter((file) => !isTest(file)))
      counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    const full = [...counts].filter(([, count]) => count > FOLDER_FILES_MAX);
    expect(full.map(([folder, count]) => ({ path: `${folder}/`, what: `${count} files` }))).toEqual([]);
  });

  test("comments cite rules of a SPEC.md by their number, and files that exist", () => {
    const own = "tests/tidy.test.ts";
    const paths = files("{src,tests,bench,schema,scripts,example}/**/*.{ts,md,sql}").filter((path) => path !== own);
    expect(linesWith(paths, /\bDecisions \d|\bSpec: /)).toEqual([]);
  });

  test("docstrings begin with a verb, or the noun that names the thing, and can be read alone", () => {
    const relative =
      /\/\*\*\s+(?:\* )?(?:What|As|Which|Of|By|The same|Whose|Where|How|When|Who|Those|Its|Their|They)\b.*/g;
    const others = files("{bench,scripts,schema,example,tests}/**/*.{ts,tsx}").concat(files("src/**/*.test.{ts,tsx}"));
    const found = [...sources, ...others].flatMap((path) =>
      [...read(path).matchAll(relative)].map(([text]) => `${path}: ${text}`),
    );
    expect(found).toEqual([]);
  });

  test("no literal is spread into a literal: its members are written out", () => {
    expect(linesWith(files("{src,scripts,schema,example}/**/*.ts"), /\.\.\.\{/)).toEqual([]);
  });

  /** Pairs of folders of one room that import each other, of which the first should not import the second. None is added. */
  const UPWARDS: readonly string[] = [
    "areas/tables: expand -> lookups",
    "areas/tables: files -> records",
    "areas/tables: lookups -> query",
    "areas/tables: records -> write",
    "areas/tables: write -> files",
    "config: sections -> typed",
    "config: typed -> app",
    "db: audit -> outbox",
    "db: audit -> writer",
  ];

  test("folders of a room are floors: of two, one imports the other", () => {
    const placeOf = (path: string) => {
      const [, room = "", folder = ""] = /^src\/(?:server\/)?(areas\/[\w-]+|[\w-]+)\/(?:([\w-]+)\/)?/.exec(path) ?? [];
      return { room, folder };
    };
    const imports = new Set<string>();
    for (const path of sources) {
      const { room, folder } = placeOf(path);
      if (folder === "" || room === "client" || room === "dashboard") continue;
      for (const to of importsOf(path).map(placeOf)) {
        if (to.room === room && to.folder !== "" && to.folder !== folder)
          imports.add(`${room}: ${folder} -> ${to.folder}`);
      }
    }
    const reversed = (pair: string): string => pair.replace(/(\S+) -> (\S+)/, "$2 -> $1");
    const isKnown = (pair: string): boolean => UPWARDS.includes(pair) || UPWARDS.includes(reversed(pair));
    expect([...imports].filter((pair) => imports.has(reversed(pair)) && !isKnown(pair))).toEqual([]);
  });

  test("no file imports itself through others, types included", () => {
    const imported = new Map(sources.map((path) => [path, importsOf(path)]));
    const reach = (from: string): Set<string> => {
      const found = new Set<string>(imported.get(from));
      for (const path of found) for (const next of imported.get(path) ?? []) found.add(next);
      return found;
    };
    const circular = sources.filter((path) => reach(path).has(path));
    expect(
      circular.map((path) => ({ path, what: (imported.get(path) ?? []).filter((to) => circular.includes(to)).join() })),
    ).toEqual([]);
  });
});

describe("tests and their rules", () => {
  const RULE_ID = /\[([A-Z]{2,3}\d+(?:,\s*[A-Z]{2,3}\d+)*)\]/g;
  const idsIn = (text: string): string[] => [...text.matchAll(RULE_ID)].flatMap(([, ids = ""]) => ids.split(/,\s*/));
  const specs = [...files("src/**/SPEC.md"), ...files("{tests,clients}/*/SPEC.md")];
  const LIBRARIES = new Set(["kernel", "disk", "access", "http", "platform", "dashboard"]);

  const declared = specs.flatMap((path) => {
    const lines = read(path)
      .split("\n")
      .filter((line) => /^\s*(?:[-*]\s+|\d+\.\s+)?(?:\*\*)?\[[A-Z]{2,3}\d+\]/.test(line));
    return lines.map((line) => ({ path, id: idsIn(line)[0] ?? "" }));
  });
  const quoting = [
    ...tests,
    ...files("tests/conformance/scenarios/*.json"),
    ...files("clients/**/{test_*.py,*Test.kt}"),
  ];
  const quoted = new Set(quoting.flatMap((path) => idsIn(read(path))));

  test("every area has numbered rules", () => {
    const rooms = new Set(sources.map(roomOf).filter((room) => !room.endsWith(".ts")));
    const withRules = new Set(specs.map(roomOf));
    const without = [...rooms].filter((room) => !LIBRARIES.has(room) && !withRules.has(room));
    expect(without).toEqual([]);
    expect(specs.filter((path) => !declared.some((rule) => rule.path === path))).toEqual([]);
  });

  test("a rule's number is used once", () => {
    const ids = declared.map(({ id }) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test("every rule that a test quotes exists", () => {
    const ids = new Set(declared.map(({ id }) => id));
    expect([...quoted].filter((id) => !ids.has(id)).sort()).toEqual([]);
  });

  test("every rule is quoted by a test", () => {
    expect(declared.filter(({ id }) => !quoted.has(id)).map(({ path, id }) => `${path} [${id}]`)).toEqual([]);
  });

  test("none is skipped, put off or run alone", () => {
    const wrong = tests.filter((path) => /\b(?:test|it|describe)\.(?:skip|todo|only|failing)\b/.test(codeOf(path)));
    expect(wrong).toEqual([]);
  });

  // What every client has as well is free to use: the kernel's types, and how a delta is applied.
  test("black-box tests use the public interface only", () => {
    const wrong = files("tests/{http,ws}/**/*.ts").flatMap((path) =>
      [...codeOf(path).matchAll(/from "([^"]*\/src\/[^"]+)"/g)]
        .filter(([, target = ""]) => !/\/src\/(?:kernel\/|server\/areas\/rooms\/delta\.ts)/.test(target))
        .map(([, target]) => `${path} -> ${target}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe("the house", () => {
  test("dependencies have exact versions", () => {
    const manifest: Record<string, Record<string, string> | undefined> = JSON.parse(read("package.json"));
    const versions = ["dependencies", "devDependencies", "optionalDependencies"].flatMap((kind) =>
      Object.entries(manifest[kind] ?? {}),
    );
    expect(versions.filter(([, version]) => !/^(?:npm:[\w./-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))).toEqual(
      [],
    );
  });

  test("no server's data lies among the files of the project", () => {
    const kept = files("**/{platform.lock,secrets.json,*.db}").filter(
      (path) => !/^(?:data|dist|bench\/data)\//.test(path),
    );
    expect(kept).toEqual([]);
  });

  test("files and folders that ARCHITECTURE.md and CONTRIBUTING.md name exist", () => {
    const bases = ["", "src", "src/server", "src/server/areas"];
    const missing = ["ARCHITECTURE.md", "CONTRIBUTING.md"].flatMap((path) =>
      [...read(path).matchAll(/`((?:\.\.\/)?[a-z][a-z-]*(?:\/[a-z-]+)+(?:\.test)?\.tsx?)`/g)]
        .map(([, name = ""]) => name)
        .filter((name) => !bases.some((base) => existsSync(join(root, base, name))))
        .map((name) => `${path} names ${name}`),
    );
    expect(missing).toEqual([]);
  });

  test("links of the documents lead to files that exist", () => {
    const documents = [...files("*.md"), ...files("docs/**/*.md"), ...files("{src,schema,bench}/**/*.md")];
    /** Returns the anchor of a Markdown heading: lower case, words joined by hyphens, everything else gone. */
    const anchorsOf = (path: string): string[] =>
      [...readFileSync(path, "utf8").matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
        title
          .toLowerCase()
          .replace(/[^\p{L}\p{N} _-]/gu, "")
          .replaceAll(" ", "-"),
      );
    const isBroken = (from: string, link: string): boolean => {
      const [target = "", anchor] = link.split("#");
      const path = target === "" ? join(root, from) : resolve(root, dirname(from), target);
      if (!existsSync(path)) return true;
      return anchor !== undefined && path.endsWith(".md") && !anchorsOf(path).includes(anchor);
    };
    const broken = documents.flatMap((path) =>
      [...read(path).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, link = ""]) => link)
        .filter((link) => !/^[a-z]+:/.test(link) && isBroken(path, link))
        .map((link) => `${path} -> ${link}`),
    );
    expect(broken).toEqual([]);
  });
});
