import type { Server } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { IDLE_TIMEOUT_SECONDS, REQUEST_MAX_BYTES } from "../limits.ts";
import { Generations, type Retirement } from "./generations.ts";
import type { Certificate } from "./listener.ts";

export interface WorkerPortOptions<Data> {
  clock: Clock;
  host: string;
  port: number;
  /** Whether other processes listen on the port, too. */
  isShared: boolean;
  /** The certificate; null: HTTP. */
  tls: Certificate | null;
  fetch(request: Request, server: Server<Data>, retirement: Retirement): MaybePromise<Response>;
  websocket: Bun.WebSocketHandler<Data>;
  failure(cause: unknown): Response;
}

/** Listens on a port that other processes may share. Errors: it is not available, or the system cannot share it. */
export function openWorkerPort<Data>({ host, isShared, tls, ...options }: WorkerPortOptions<Data>) {
  let { port } = options;
  // Without steering: the port's other sockets belong to other processes.
  const servers = new Generations<Data>(options.clock, null);
  const open = (certificate: Certificate | null): Server<Data> =>
    servers.open((retirement) =>
      Bun.serve<Data>({
        hostname: host,
        port,
        reusePort: isShared,
        ...(certificate === null ? {} : { tls: { cert: certificate.cert, key: certificate.key } }),
        idleTimeout: IDLE_TIMEOUT_SECONDS,
        maxRequestBodySize: REQUEST_MAX_BYTES,
        fetch: (request, server) => options.fetch(request, server, retirement),
        websocket: options.websocket,
        error: options.failure,
      }),
    );
  const server = open(tls);
  port = server.port ?? port;
  return {
    port,
    /** The server that was opened first: the only one without a certificate. */
    server,
    servers,
    /** Uses another certificate for new connections; open ones continue. Errors: the certificate is invalid. */
    renew: (certificate: Certificate): void => void open(certificate),
  };
}
