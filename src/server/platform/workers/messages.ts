import type { LentId, ToBorrower } from "../../db/readers/lent-files.ts";
import type { Certificate } from "../../http/listening/listener.ts";
import type { MainProcess } from "../../http/workers/forwarding.ts";

/** Everything that a process has to know besides the config to answer from the files. */
export interface FilesOrder {
  dataDirectory: string;
  secrets: { serviceKey: string; jwtSecret: string };
  isDrill: boolean;
  /** The first parts of all paths that are not the site's; null: another process answers for the site. */
  notOfSite: readonly string[] | null;
}

/** Everything that a worker has to know besides the config. */
export interface WorkerOrder extends FilesOrder {
  host: string;
  port: number;
  /** The certificate; null: HTTP. */
  tls: Certificate | null;
  /** The path of the shared page. */
  page: string;
  main: MainProcess;
  /** The hash of the files of the config: a worker with another config would have other rules. */
  configHash: string;
}

/** An answer that a worker has given: what the request log, the metrics and the access log need. */
export interface WorkerAnswer {
  requestId: string;
  /** The pattern of the path. */
  route: string;
  params: Readonly<Record<string, string>>;
  method: string;
  status: number;
  durationMs: number;
  /** null: nobody was signed in. */
  userId: string | null;
  /** The name of the service key; null: the request had none. */
  key: string | null;
  /** The URL and the client's address; null where nobody asks for them. */
  request: { url: string; address: string } | null;
}

/** Messages of the main process to a worker. */
export type ToWorker =
  | { kind: "begin"; order: WorkerOrder }
  | { kind: "hold"; id: number; isHeld: boolean }
  | { kind: "shed"; share: number }
  | { kind: "renew"; certificate: Certificate }
  | ToBorrower
  | { kind: "stop" };

/** Messages of a worker to the main process. */
export type FromWorker =
  | { kind: "waiting" }
  | { kind: "ready" }
  /** The file of an instance is to be lent, if it is open. */
  | { kind: "ask"; namespace: string; instanceId: string }
  | { kind: "returned"; id: LentId }
  /** Several `WorkerAnswer`, as JSON: that costs less than their copy. */
  | { kind: "answers"; answers: string }
  | { kind: "failed"; message: string };
