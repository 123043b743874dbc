import { connect } from "node:tls";

export interface Peer {
  name: string;
  issuer: string;
  serial: string;
}

/** The certificate that a server shows on a new connection, whoever signed it. */
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
