import { measureTls } from "../cases/tls.ts";
import type { Result, Section } from "../support/section.ts";
import { milliseconds } from "../support/statistics.ts";
import { plain, rate } from "./figures.ts";

const START_MAX_MS = 120;
const IDLE_MAX_BYTES = 90e6;

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

export const tls: Section = {
  name: "tls",
  title: "HTTPS",
  about: `The film club of \`npm start\` with its site, dashboard, job and 3,201 films, with a certificate in files (ECDSA, P-256). One film by its
id: 32 connections of wrk that stay open, beside a bare \`Bun.serve\` with the same certificate that answers with the same bytes
(\`bench/tls-floor.ts\`), and beside the same server without TLS; then four clients (\`openssl s_time\`) that connect again and
again, without resumption. In turns, five rounds of three seconds; medians. The load generator takes its share of the two processors for TLS as well.
Start: from starting the process to the last byte of a list over HTTPS, median of 15, on an empty data directory. Memory: resident (RSS), 10 s after a start
with the films, before any request.`,
  async run(bench): Promise<Result[]> {
    const { startMs, idleBytes, idlePlainBytes, kept, keptBesidePlain, handshakes } = await measureTls(bench);
    return [
      rate("GET one on open connections", kept),
      rate("GET one on open connections, beside HTTP", keptBesidePlain),
      rate("full handshakes", { ...handshakes, unit: "handshakes" }),
      {
        ...plain("start to the first answer over HTTPS", milliseconds(startMs)),
        target: `≤ ${START_MAX_MS} ms`,
        isMet: startMs <= START_MAX_MS,
      },
      {
        ...plain("idle memory", megabytes(idleBytes)),
        floor: megabytes(idlePlainBytes),
        ratio: idleBytes / idlePlainBytes,
        target: `≤ ${megabytes(IDLE_MAX_BYTES)}`,
        isMet: idleBytes <= IDLE_MAX_BYTES,
      },
    ];
  },
};
