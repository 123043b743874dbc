import type { ClusterConfig } from "../../config/types.ts";

/** A place of the log that the object store has, by the epoch of the owner that stored it, in a history. */
export interface StoredPlace {
  history: number;
  position: number;
  nonce: string;
  epoch: number;
}

/** Returns the place of a cluster's copies in its object store: several clusters may share one. */
export function placeOfCopies(objects: ClusterConfig["objects"], cluster: string): ClusterConfig["objects"] {
  if ("folder" in objects) return { folder: `${objects.folder.replace(/\/+$/, "")}/${cluster}` };
  const { prefix = "" } = objects.s3;
  const before = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
  return { s3: { ...objects.s3, prefix: `${before}${cluster}/` } };
}
