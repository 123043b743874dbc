import { type Static, Type } from "typebox";
import { CONTINUOUS_KEEP_DAYS_MAX, PORT_MAX } from "../limits.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "../shape/report.ts";
import { refined, textWith, url, whole } from "../shape/schema.ts";
import { place } from "./backups.ts";

const LISTEN = /^(?:\[[0-9a-fA-F:]+\]|[^\s:[\]/]+):(\d{1,5})$/;

const listen = () =>
  textWith((value) => {
    const [, port] = LISTEN.exec(value) ?? [];
    if (port !== undefined && Number(port) >= 1 && Number(port) <= PORT_MAX) return null;
    return `must be "host:port", got ${describe(value)}`;
  });

/** A URL that a message does not quote: it has a password. */
const postgresUrl = () =>
  textWith((value) =>
    /^postgres(?:ql)?:$/.test(URL.parse(value)?.protocol ?? "") ? null : "must be a URL that begins with postgres:",
  );

const nodeUrl = () =>
  refined(url("https", "http"), (value, report) => {
    const { pathname, search, hash, username, password } = new URL(value);
    const isPlain = pathname === "/" && [search, hash, username, password].every((part) => part === "");
    if (!isPlain) report.say("must have a host and a port only");
  });

export const ClusterSection = Type.Object({
  /** The PostgreSQL with the log and the leases: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. One cluster for each database. */
  postgres: postgresUrl(),
  /** The object store with full copies of the files; a folder that all nodes share, for development. */
  objects: place(),
  /** The address by which other nodes reach this one, and its identity: never that of the public listener. */
  url: nodeUrl(),
  /** `"host:port"` of the node port; by default those of `url`. */
  listen: Type.Optional(listen()),
  /** Durability that PostgreSQL must have: `"standby"` by default; `"single"` accepts one server, and replication below it. */
  durability: Type.Optional(Type.Union([Type.Literal("standby"), Type.Literal("single")])),
  /** Whether nodes that cannot reach PostgreSQL answer requests without credentials from what they have; false by default. */
  staleReads: Type.Optional(Type.Boolean()),
  /** Days of which every moment can be had back from the object store. Default: 7. */
  keepDays: Type.Optional(whole({ min: 1, max: CONTINUOUS_KEEP_DAYS_MAX })),
});
/** Several nodes with one backend. None by default: the server is alone. */
export interface ClusterConfig extends Static<typeof ClusterSection> {}

/** Checks what a cluster needs of other sections. */
export function checkCluster(config: PlainObject, report: Report): void {
  const { cluster, storage, backups, server } = config;
  if (cluster === undefined) return;
  const buckets = isPlainObject(storage) && isPlainObject(storage["buckets"]) ? storage["buckets"] : {};
  for (const [name, bucket] of Object.entries(buckets)) {
    if (!isPlainObject(bucket) || bucket["backend"] !== undefined) continue;
    const at = report.at("storage").at("buckets").at(name).at("backend");
    at.say("is required with cluster: files in the data directory of one node would be missing on the others");
  }
  if (isPlainObject(backups) && backups["continuous"] !== undefined)
    report.at("backups").at("continuous").say("must not be with cluster, whose object store is its continuous backup");
  if (!isPlainObject(server)) return;
  if (server["tls"] !== undefined)
    report
      .at("server")
      .at("tls")
      .say("must not be with cluster: nodes speak HTTP to the load balancer in front of them");
  if (server["workers"] !== undefined && server["workers"] !== 0)
    report.at("server").at("workers").say("must be 0 with cluster: run more nodes");
}
