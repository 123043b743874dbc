import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { BackupsConfig } from "../../../config/types.ts";
import { openDestination } from "../schedule/destinations.ts";
import { noteVerified } from "../schedule/verified.ts";
import { type TryOpening, verifyBackup } from "./verify.ts";

/** The input of a verification, as JSON on the standard input of its process. */
export interface VerifyJob {
  dataDirectory: string;
  to: BackupsConfig["to"];
  /** The name of a backup at the destination. */
  stored: string;
}

/** The result, as JSON on the standard output. */
export interface VerifyResult {
  fileCount: number;
  contentBytes: number;
  databaseCount: number;
  verifiedAt: Millis;
}

/** Verifies one backup at its destination, and notes there that it held. Errors: as verifyBackup's; those of the destination. */
export async function verifyStored(
  { dataDirectory, to, stored }: VerifyJob,
  { clock, signal, tryOpening }: { clock: Clock; signal: AbortSignal; tryOpening: TryOpening },
): Promise<VerifyResult> {
  const destination = openDestination(to, dataDirectory);
  try {
    const file = await destination.fetch(stored, signal);
    const { fileCount, contentBytes, databaseCount } = await verifyBackup({ file, tryOpening, signal });
    const verifiedAt = clock.now();
    await noteVerified(destination, stored, verifiedAt);
    return { fileCount, contentBytes, databaseCount, verifiedAt };
  } finally {
    destination.clean();
  }
}
