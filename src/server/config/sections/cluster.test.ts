import { describe, expect, test } from "bun:test";
import { checkConfig } from "../check.ts";

const CLUSTER = {
  postgres: "postgres://platform:secret@db.example:5432/platform",
  objects: { folder: "/srv/objects" },
  url: "http://10.0.0.1:9001",
};
const S3 = { endpoint: "https://s3.example", bucket: "files", accessKeyId: "a", secretAccessKey: "b" };

/** Returns `path: message` of every problem. */
function problemsOf(config: unknown): string[] {
  const checked = checkConfig(config);
  return "problems" in checked ? checked.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}

test("[CF400] a cluster has a PostgreSQL, an object store and the node's URL; the rest has defaults", () => {
  expect(problemsOf({ cluster: CLUSTER })).toEqual([]);
  const whole = { ...CLUSTER, listen: "0.0.0.0:9001", durability: "single", staleReads: true, keepDays: 30 };
  expect(problemsOf({ cluster: whole })).toEqual([]);
  expect(problemsOf({ cluster: { ...CLUSTER, listen: "[::]:9001", objects: { s3: S3 } } })).toEqual([]);
  expect(problemsOf({ cluster: {} }).map((problem) => problem.split(":")[0])).toEqual([
    "cluster.postgres",
    "cluster.objects",
    "cluster.url",
  ]);
});

describe("[CF400] each member is checked", () => {
  const cases: [what: string, member: object, path: string, words: string][] = [
    ["another database", { postgres: "mysql://a:secret@b/c" }, "cluster.postgres", "begins with postgres:"],
    ["a path in the URL", { url: "http://10.0.0.1:9001/nodes" }, "cluster.url", "host and a port only"],
    ["no URL", { url: "10.0.0.1:9001" }, "cluster.url", "http"],
    ["a port alone", { listen: "9001" }, "cluster.listen", '"host:port"'],
    ["a port too large", { listen: "0.0.0.0:70000" }, "cluster.listen", '"host:port"'],
    ["another durability", { durability: "none" }, "cluster.durability", "standby"],
    ["no days", { keepDays: 0 }, "cluster.keepDays", "1"],
    ["two stores", { objects: { folder: "/a", s3: S3 } }, "cluster.objects", "either folder or s3"],
  ];
  for (const [what, member, path, words] of cases) {
    test(what, () => {
      const [problem = ""] = problemsOf({ cluster: { ...CLUSTER, ...member } });
      expect(problem).toStartWith(`${path}: `);
      expect(problem).toContain(words);
      // It has a password.
      expect(problem).not.toContain("secret");
    });
  }
});

test("[CF401] what lies on one machine, and what a cluster does not have, is refused beside it", () => {
  const files = { access: { read: true } };
  expect(problemsOf({ cluster: CLUSTER, storage: { buckets: { files } } })).toEqual([
    "storage.buckets.files.backend: is required with cluster: files in the data directory of one node would be missing on the others",
  ]);
  expect(problemsOf({ cluster: CLUSTER, storage: { buckets: { files: { ...files, backend: { s3: S3 } } } } })).toEqual(
    [],
  );
  expect(problemsOf({ cluster: CLUSTER, backups: { continuous: { to: { folder: "/b" } } } })).toEqual([
    "backups.continuous: must not be with cluster, whose object store is its continuous backup",
  ]);
  const tls = { cert: "cert.pem", key: "key.pem" };
  expect(problemsOf({ cluster: CLUSTER, server: { tls } }).join()).toStartWith("server.tls: must not be with cluster");
  expect(problemsOf({ cluster: CLUSTER, server: { workers: 2 } })).toEqual([
    "server.workers: must be 0 with cluster: run more nodes",
  ]);
  expect(problemsOf({ cluster: CLUSTER, server: { workers: 0 } })).toEqual([]);
});
