/** Whether browsers let pages at this address use passkeys of a relying party: its own host, or a domain above it. */
export function fitsRelyingParty(address: string, rpId: string): boolean {
  const host = URL.parse(address)?.hostname ?? "";
  return host === rpId || host.endsWith(`.${rpId}`);
}
