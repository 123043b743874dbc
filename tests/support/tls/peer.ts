import { connect } from "node:tls";
import { until } from "../until.ts";

export interface Peer {
  name: string;
  issuer: string;
  serial: string;
}

/** Returns the certificate that a server presents on a new connection, whoever signed it. */
export function peerOf(url: string): Promise<Peer> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<Peer>();
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
    const { subject, issuer, serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    resolve({ name: String(subject.CN), issuer: String(issuer.CN), serial: serialNumber });
  });
  socket.on("error", reject);
  return promise;
}

/**
 * Number of consecutive equal certificates that is no coincidence: for some seconds after a renewal a server presents either one.
 */
const CONNECTIONS_IN_A_ROW = 12;

/** Waits until all new connections are presented an expected certificate. */
export function untilPeers(what: string, url: string, isExpected: (peer: Peer) => boolean): Promise<void> {
  return until(what, async () => {
    for (let made = 0; made < CONNECTIONS_IN_A_ROW; made++) if (!isExpected(await peerOf(url))) return false;
    return true;
  });
}
